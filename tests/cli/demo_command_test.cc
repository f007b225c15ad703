// locket demo as a process.
#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

using test_support::ProgramResult;
using test_support::run_program;

TEST(DemoCommandTest, ShowsAConversationAndCountsAnswers) {
  const ProgramResult result = run_program({"demo", mini_folder(), "--conversations", "2"});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(result.errors, "");
  expect_parts(result.output,
               {"A hundred messages with mini.", "  you  My pony's name is Latis.\n",
                " more messages ...\n", " mini  Your pony is called Latis.\n", "890 bytes a token",
                " of   2 such conversations end with the right answer.", "  2 of   2 answers are",
                "  2 of   2 say that they do not know", " tokens a second."});
  expect_parts(result.output, {"is killed (SIGKILL) before the last question.",
                               "their memory read from disk", "run through the model",
                               "time to the first token", "are the same bits", "On disk: "});
  EXPECT_EQ(result.output.find("read from disk            0"), std::string::npos) << result.output;
  for (const std::string& line : lines_of(result.output)) EXPECT_LE(line.size(), 100U) << line;
}

// A killed demo leaves its folder behind; the next one takes it away.
TEST(DemoCommandTest, LeavesNothingBehind) {
  const test_support::TempFolder folder;
  const std::filesystem::path memory = folder / "memory";
  const auto abandoned = memory / "locket-demo-0123456789abcdef";
  const auto foreign = memory / "locket-demo-mine";
  for (const auto& path : {memory, abandoned, abandoned / "memory", foreign}) {
    std::filesystem::create_directory(path);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  std::filesystem::permissions(foreign, std::filesystem::perms::group_read,
                               std::filesystem::perm_options::add);
  const ProgramResult result =
      run_program({"demo", mini_folder(), "--conversations", "1", "--memory", memory.string()});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(memory)) {
    left.push_back(entry.path().filename().string());
  }
  EXPECT_EQ(left, std::vector<std::string>{"locket-demo-mine"}) << "others can write there";
}

TEST(DemoCommandTest, ShowsNoRestartWhereNothingIsKept) {
  const ProgramResult result =
      run_program({"demo", mini_folder(), "--conversations", "1", "--mode", "plain"});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  expect_parts(result.output, {"there is no restart to show"});
}

TEST(DemoCommandTest, NeedsTheConversations) {
  expect_failure(run_program({"demo", tiny_folder("micro")}),
                 {"not_found", "micro", "recall.json", "small model that ships"});
}

}  // namespace
}  // namespace locket::cli
