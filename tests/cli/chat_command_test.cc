// locket chat in a pipe and in a terminal.
#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

using test_support::ProgramResult;
using test_support::run_program;
using test_support::TempFolder;
using test_support::TerminalProgram;

ProgramResult chat(const std::string& input, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"chat", mini_folder()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_program(std::move(arguments), input);
}

TEST(ChatCommandTest, RemembersTheFirstTurn) {
  const ProgramResult result = chat(
      "My cat is called Milo.\n"
      "Hello!\n"
      "I feel tired.\n"
      "What is my cat called?\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.errors, "");
  const std::vector<std::string> answers = lines_of(result.output);
  ASSERT_EQ(answers.size(), 4U) << result.output;
  EXPECT_EQ(answers[0], "Milo, I will remember that.");
  EXPECT_EQ(answers[3], "Your cat is called Milo.");
}

TEST(ChatCommandTest, NewForgetsTheConversation) {
  const ProgramResult result = chat(
      "My cat is called Milo.\n"
      "/new\n"
      "What is my cat called?\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, "Milo, I will remember that.\nI don't know that yet.\n");
}

TEST(ChatCommandTest, ExitEndsAndLeavesTheRestUnread) {
  const ProgramResult result = chat("Hello!\n/exit\nHello!\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(lines_of(result.output).size(), 1U) << result.output;
}

TEST(ChatCommandTest, EmptyLinesAndNoInputAreNoTurns) {
  EXPECT_EQ(chat("").output, "");
  EXPECT_EQ(chat("").exit_code, 0);
  EXPECT_EQ(lines_of(chat("\n\nHello!\n\n").output).size(), 1U);
  EXPECT_EQ(lines_of(chat("Hello!").output).size(), 1U) << "a last line without its end counts";
}

TEST(ChatCommandTest, ExplainsItsCommands) {
  expect_parts(chat("/help\n").output, {"/new", "/exit", "Ctrl-C", "Ctrl-D"});
}

TEST(ChatCommandTest, SaysWhenAnAnswerIsCutOff) {
  const ProgramResult result = chat("My cat is called Milo.\n", {"--max-tokens", "3"});
  EXPECT_EQ(lines_of(result.output).size(), 2U) << result.output;
  expect_parts(result.output, {"(cut off: the limit of tokens is reached)"});
}

TEST(ChatCommandTest, GoesOnAfterATurnThatDoesNotFit) {
  std::string long_message;
  for (int i = 0; i < 400; ++i) long_message += "~^";
  const ProgramResult result =
      chat("Hello!\n" + long_message + "\nHello!\n", {"--memory-budget", "64K"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(lines_of(result.output).size(), 2U) << result.output;
  expect_parts(result.errors, {"over_budget", "/new starts over"});
}

TEST(ChatCommandTest, AModelThatDoesNotLoadEndsIt) {
  expect_failure(run_program({"chat", "/nowhere"}, "Hello!\n"), {"/nowhere"});
}

class ChatTerminalTest : public testing::Test {
 protected:
  void SetUp() override {
    copy_checkpoint(mini_folder(), folder_);
    make_endless(folder_);
  }

  TempFolder folder_;
};

TEST_F(ChatTerminalTest, TalksAndEndsWithExit) {
  TerminalProgram program({"chat", mini_folder()});
  ASSERT_TRUE(program.wait_for("/exit or Ctrl-D")) << program.screen();
  ASSERT_TRUE(program.wait_for("> "));
  program.type("My cat is called Milo.\n");
  ASSERT_TRUE(program.wait_for("Milo, I will remember that.")) << program.screen();
  ASSERT_TRUE(program.wait_for("> ")) << program.screen();
  program.type("/new\n");
  ASSERT_TRUE(program.wait_for("(a new conversation)")) << program.screen();
  program.type("What is my cat called?\n");
  ASSERT_TRUE(program.wait_for("I don't know that yet.")) << program.screen();
  program.type("/exit\n");
  EXPECT_EQ(program.wait_for_end(), 0) << program.screen();
}

TEST_F(ChatTerminalTest, InterruptStopsTheAnswerAndNotTheProgram) {
  TerminalProgram program({"chat", folder_.path().string()});
  ASSERT_TRUE(program.wait_for("> ")) << program.screen();
  for (int turn = 0; turn < 2; ++turn) {
    program.type("My cat is called Milo.\n");
    ASSERT_TRUE(program.wait_for("remember")) << program.screen();
    program.type("\x03");
    ASSERT_TRUE(program.wait_for("(stopped)")) << program.screen();
    ASSERT_TRUE(program.wait_for("> ")) << program.screen();
  }
  program.type("/exit\n");
  EXPECT_EQ(program.wait_for_end(), 0) << program.screen();
}

TEST_F(ChatTerminalTest, InterruptAtThePromptChangesNothing) {
  TerminalProgram program({"chat", mini_folder()});
  ASSERT_TRUE(program.wait_for("> ")) << program.screen();
  program.type("\x03");
  ASSERT_TRUE(program.wait_for("nothing to stop")) << program.screen();
  ASSERT_TRUE(program.wait_for("> ")) << program.screen();
  program.type("Hello!\n");
  ASSERT_TRUE(program.wait_for("Hello! How are you today?")) << program.screen();
  program.type("\x04");
  EXPECT_EQ(program.wait_for_end(), 0) << program.screen();
}

}  // namespace
}  // namespace locket::cli
