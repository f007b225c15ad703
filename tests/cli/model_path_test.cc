#include "cli/model_path.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/file.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;

class ModelPathTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / ("locket_model_path_test." + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path make_model(const fs::path& relative) const {
    fs::create_directories(folder_ / relative);
    EXPECT_TRUE(write_whole_file(folder_ / relative / "config.json", {}));
    return folder_ / relative;
  }

  fs::path folder_;
};

TEST_F(ModelPathTest, FindsTheModelBesideTheBuildFolder) {
  const fs::path model = make_model("models/mini");
  EXPECT_EQ(find_model({.program = folder_ / "build" / "release" / "locket"}).value(), model);
}

TEST_F(ModelPathTest, FindsTheInstalledModel) {
  const fs::path model = make_model("share/locket/models/mini");
  EXPECT_EQ(find_model({.program = folder_ / "bin" / "locket"}).value(), model);
}

TEST_F(ModelPathTest, LooksInTheCurrentFolderLast) {
  const fs::path here = make_model("here/models/mini");
  const ModelSearch search = {.program = folder_ / "bin" / "locket",
                              .current_folder = folder_ / "here"};
  EXPECT_EQ(find_model(search).value(), here);
  const fs::path near = make_model("models/mini");
  EXPECT_EQ(find_model(search).value(), near);
}

TEST_F(ModelPathTest, TakesTheNamedFolderAndNoOther) {
  make_model("models/mini");
  const fs::path other = make_model("other");
  ModelSearch search = {.named = other.string(), .program = folder_ / "bin" / "locket"};
  EXPECT_EQ(find_model(search).value(), other);
  search.named = (folder_ / "nowhere").string();
  const auto found = find_model(search);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  EXPECT_NE(found.error().message.find(search.named), std::string::npos);
}

TEST_F(ModelPathTest, NamesEveryFolderItTried) {
  const ModelSearch search = {.program = folder_ / "bin" / "locket", .current_folder = folder_};
  const auto found = find_model(search);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, ErrorCode::kNotFound);
  for (const fs::path& candidate : model_candidates(search)) {
    EXPECT_NE(found.error().message.find(candidate.string()), std::string::npos) << candidate;
  }
}

TEST_F(ModelPathTest, EndsTheWalkAtTheRootAndTriesNoFolderTwice) {
  const auto candidates = model_candidates({.program = "/locket", .current_folder = "/"});
  EXPECT_EQ(candidates, (std::vector<fs::path>{"/models/mini", "/share/locket/models/mini"}));
}

TEST_F(ModelPathTest, PrefersTheGivenTokenizerThenTheGivenModel) {
  EXPECT_EQ(resolve_tokenizer("a/t.json", "m").value(), "a/t.json");
  EXPECT_EQ(resolve_tokenizer("", "m").value(), fs::path("m") / "tokenizer.json");
  EXPECT_EQ(resolve_model("m").value(), "m");
}

}  // namespace
}  // namespace locket::cli
