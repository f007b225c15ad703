// Broken checkpoint files: the header of a safetensors file, the index, config.json. Whatever is in
// them, the answer is a value that holds together or an error in valid UTF-8, never a crash.
#include "tests/support/checkpoint_files.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config_json.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shard_index.h"
#include "model/generations/v41_config.h"
#include "service/loaded_model.h"
#include "tests/fuzz/broken_text.h"
#include "tokenizer/tokenizer.h"

namespace locket::fuzz {
namespace {

namespace fs = std::filesystem;
using test_support::TempFolder;

constexpr int kRounds = 300;

fs::path odd() { return fs::path(LOCKET_TEST_DATA) / "checkpoints" / "odd"; }

// A new file each time: some file systems wait for the disk when an old one is overwritten.
fs::path write_anew(const TempFolder& folder, const std::string& name, const std::string& content) {
  fs::remove(folder / name);
  return folder.write(name, content);
}

// Every way of breaking, in turn.
std::string broken(BrokenText& text, int round) {
  switch (round % 4) {
    case 0:
      return text.cut();
    case 1:
      return text.flipped();
    case 2:
      return text.edited();
    default:
      return text.renumbered();
  }
}

void expect_readable(const Error& error) {
  EXPECT_FALSE(error.message.empty());
  EXPECT_EQ(tokenizer::repair_utf8(error.message), error.message);
  EXPECT_LT(error.message.size(), 4000U) << error.message;
}

// Counts, so that a test cannot pass by refusing, or accepting, everything.
struct Tally {
  int accepted = 0;
  int refused = 0;

  template <class Value>
  bool count(const Result<Value>& result) {
    if (result.has_value()) {
      ++accepted;
      return true;
    }
    ++refused;
    expect_readable(result.error());
    return false;
  }
};

// What SafetensorsFile promises of every file it opens.
void expect_sound(const checkpoint::SafetensorsFile& file, std::uint64_t file_bytes) {
  for (const checkpoint::TensorEntry& entry : file.tensors()) {
    ASSERT_LE(entry.offset, file_bytes);
    ASSERT_LE(entry.byte_count, file_bytes - entry.offset);
    EXPECT_EQ(file.find(entry.name), &entry);
    EXPECT_TRUE(file.read(entry).has_value()) << entry.name;
  }
}

TEST(SafetensorsFuzzTest, EveryBrokenHeaderIsReadOrRefused) {
  const TempFolder folder;
  const std::string text =
      test_support::safetensors_text({{"a.weight", "BF16", {3, 4}, std::string(24, 'a')},
                                      {"a.scale", "F8_E8M0", {1, 1}, std::string(1, 'b')},
                                      {"packed", "I8", {2, 8}, std::string(16, 'c')},
                                      {"empty", "F32", {0, 7}, ""},
                                      {"number", "F32", {}, std::string(4, 'd')}},
                                     {{"format", "pt"}});
  BrokenText source(text, 20260921);
  Tally tally;
  for (int round = 0; round < 4 * kRounds; ++round) {
    const std::string bytes = broken(source, round);
    const auto file = checkpoint::SafetensorsFile::open(write_anew(folder, "file", bytes));
    if (tally.count(file)) expect_sound(*file, bytes.size());
  }
  EXPECT_GT(tally.accepted, 20);
  EXPECT_GT(tally.refused, kRounds);
}

// The header alone is changed and its length made right again, so that the breakage reaches the
// parser of the header.
TEST(SafetensorsFuzzTest, EveryBrokenHeaderOfTheRightLengthIsReadOrRefused) {
  const TempFolder folder;
  const std::string shard = read_whole_file(odd() / "model-00003-of-00003.safetensors").value();
  std::uint64_t length = 0;
  for (int byte = 7; byte >= 0; --byte) {
    length = length << 8 | static_cast<unsigned char>(shard[static_cast<std::size_t>(byte)]);
  }
  const std::string data = shard.substr(8 + length);
  BrokenText source(shard.substr(8, length), 20260922);
  Tally tally;
  for (int round = 0; round < kRounds; ++round) {
    const std::string bytes = test_support::frame_safetensors(broken(source, round), data);
    const auto file = checkpoint::SafetensorsFile::open(write_anew(folder, "file", bytes));
    if (tally.count(file)) expect_sound(*file, bytes.size());
  }
  EXPECT_GT(tally.refused, kRounds / 2);
}

TEST(ShardIndexFuzzTest, EveryBrokenIndexIsReadOrRefused) {
  const TempFolder folder;
  for (const char* name : {"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors",
                           "model-00003-of-00003.safetensors", "config.json"}) {
    fs::create_symlink(odd() / name, folder / name);
  }
  BrokenText source(read_whole_file(odd() / "model.safetensors.index.json").value(), 20260923);
  Tally tally;
  for (int round = 0; round < kRounds; ++round) {
    write_anew(folder, "model.safetensors.index.json", broken(source, round));
    tally.count(checkpoint::read_shard_index(folder.path()));
    const auto opened = checkpoint::Checkpoint::open(folder.path());
    if (!opened) expect_readable(opened.error());
  }
  EXPECT_GT(tally.accepted, 20);
  EXPECT_GT(tally.refused, kRounds / 3);
}

TEST(ConfigFuzzTest, EveryBrokenConfigIsReadOrRefused) {
  BrokenText source(read_whole_file(odd() / "config.json").value(), 20260924);
  Tally tally;
  for (int round = 0; round < 10 * kRounds; ++round) {
    const auto file = checkpoint::ConfigFile::parse(broken(source, round), "config.json");
    if (!file) {
      expect_readable(file.error());
      continue;
    }
    tally.count(model::read_v41_config(file->root()));
    file->root().unread_keys();
  }
  EXPECT_GT(tally.accepted, 100);
  EXPECT_GT(tally.refused, 100);
}

// Numbers that are sane one by one and do not fit the tensors: found before anything is computed
// with them, whatever they ask for.
TEST(ConfigFuzzTest, AModelWithStrangeNumbersLoadsOrIsRefused) {
  const TempFolder folder;
  for (const auto& entry : fs::directory_iterator(odd())) {
    const std::string name = entry.path().filename().string();
    if (name != "config.json") fs::create_symlink(entry.path(), folder / name);
  }
  BrokenText source(read_whole_file(odd() / "config.json").value(), 20260925);
  Tally tally;
  for (int round = 0; round < kRounds; ++round) {
    write_anew(folder, "config.json", source.renumbered());
    tally.count(service::LoadedModel::open(folder.path(), {.threads = 1}));
  }
  EXPECT_GT(tally.accepted, 5);
  EXPECT_GT(tally.refused, kRounds / 2);
}

}  // namespace
}  // namespace locket::fuzz
