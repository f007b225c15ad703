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
  for (const std::string& line : lines_of(result.output)) EXPECT_LE(line.size(), 100U) << line;
}

TEST(DemoCommandTest, NeedsTheConversations) {
  expect_failure(run_program({"demo", tiny_folder("micro")}),
                 {"not_found", "micro", "recall.json", "small model that ships"});
}

}  // namespace
}  // namespace locket::cli
