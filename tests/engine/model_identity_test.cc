// B17: whatever the bytes of the memory depend on changes its name.
#include "engine/model_identity.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <set>
#include <string>

#include "cache/page_name.h"
#include "tests/support/tiny_models.h"

namespace locket::engine {
namespace {

class ModelIdentityTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / "locket_model_identity";
    restore();
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void restore() {
    std::filesystem::remove_all(folder_);
    std::filesystem::copy(test_support::tiny_checkpoint("micro"), folder_);
    write("tokenizer.json", "{}");
  }
  void write(const std::string& name, const std::string& content) {
    std::ofstream(folder_ / name, std::ios::binary) << content;
  }
  void flip_bit(const std::filesystem::path& path, std::uint64_t at) {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekg(static_cast<std::streamoff>(at));
    const int old = file.get();
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(old ^ 1));
    ASSERT_TRUE(file.good());
  }
  checkpoint::Checkpoint open() {
    auto checkpoint = checkpoint::Checkpoint::open(folder_);
    EXPECT_TRUE(checkpoint) << checkpoint.error().message;
    return std::move(*checkpoint);
  }
  Sha256Digest identity() {
    const auto digest = model_identity(open(), workers_);
    EXPECT_TRUE(digest) << digest.error().message;
    return digest ? *digest : Sha256Digest();
  }

  std::filesystem::path folder_;
  WorkerPool workers_{2};
};

TEST_F(ModelIdentityTest, DependsOnTheContentAlone) {
  const Sha256Digest first = identity();
  EXPECT_EQ(identity(), first);
  const std::filesystem::path moved = folder_.string() + "_moved";
  std::filesystem::remove_all(moved);
  std::filesystem::rename(folder_, moved);
  std::filesystem::copy(moved, folder_);
  std::filesystem::remove_all(moved);
  EXPECT_EQ(identity(), first);
  WorkerPool one(1);
  EXPECT_EQ(*model_identity(open(), one), first);
}

TEST_F(ModelIdentityTest, B17_EveryChangeOfConfigTokenizerAndTensorsShows) {
  std::set<Sha256Digest> seen = {identity()};
  const auto expect_new = [&](const std::string& what) {
    EXPECT_TRUE(seen.insert(identity()).second) << what;
    restore();
  };
  write("tokenizer.json", "{ }");
  expect_new("another tokenizer");
  std::ofstream(folder_ / "config.json", std::ios::app) << " ";
  expect_new("a blank more in config.json");

  // A bit of every tensor that is read whole, at its beginning and end.
  const checkpoint::Checkpoint checkpoint = open();
  std::size_t tensors = 0;
  for (const checkpoint::StoredTensor& tensor : checkpoint.tensors()) {
    if (tensor.byte_count() == 0 || tensors++ % 23 != 0) continue;
    const std::filesystem::path file = folder_ / tensor.file->path().filename();
    for (const std::uint64_t at : {std::uint64_t{0}, tensor.byte_count() - 1}) {
      flip_bit(file, tensor.entry->offset + at);
      expect_new(tensor.name());
    }
  }
  EXPECT_GT(seen.size(), 10U);
}

// The rest of a name: mode, revision, tenant.
TEST(RootNameTest, B17_ModeRevisionAndTenantShow) {
  const std::array<std::byte, 32> secret = {};
  const cache::MemoryIdentity base = {
      .model = {}, .numerics_mode = "reference", .numerics_revision = 1, .tenant = "t"};
  std::set<cache::PageName> names = {cache::root_name(secret, base)};
  cache::MemoryIdentity other = base;
  other.numerics_mode = "wide";
  EXPECT_TRUE(names.insert(cache::root_name(secret, other)).second);
  other = base;
  other.numerics_revision = 2;
  EXPECT_TRUE(names.insert(cache::root_name(secret, other)).second);
  other = base;
  other.tenant = "u";
  EXPECT_TRUE(names.insert(cache::root_name(secret, other)).second);
  other = base;
  other.model[31] = std::byte{1};
  EXPECT_TRUE(names.insert(cache::root_name(secret, other)).second);
  const std::array<std::byte, 32> another = {std::byte{1}};
  EXPECT_TRUE(names.insert(cache::root_name(another, base)).second);
}

}  // namespace
}  // namespace locket::engine
