// locket chat --session: conversations that are left, killed and continued.
#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;
using test_support::ProgramCall;
using test_support::ProgramResult;
using test_support::run_program;
using test_support::TempFolder;
using test_support::TerminalProgram;

class ChatSessionTest : public testing::Test {
 protected:
  ProgramCall call(std::vector<std::string> more, std::string input = {}) const {
    std::vector<std::string> arguments = {"chat", mini_folder()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return {.arguments = std::move(arguments),
            .input = std::move(input),
            .environment = {{"LOCKET_MEMORY", (folder_ / "memory").string()}}};
  }
  ProgramResult talk(const std::string& session, std::string input,
                     std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"--session", session});
    return run_program(call(std::move(more), std::move(input)));
  }
  ProgramResult list() const { return run_program(call({"--sessions"})); }
  // The only file of a conversation.
  fs::path conversation_file() const {
    fs::path found;
    for (const auto& entry : fs::directory_iterator(folder_ / "memory/conversations")) {
      if (entry.path().extension() != ".json") continue;
      EXPECT_EQ(found, "") << entry.path();
      found = entry.path();
    }
    return found;
  }

  TempFolder folder_;
};

TEST_F(ChatSessionTest, GoesOnWhereItWasLeft) {
  const ProgramResult first = talk("trip", "My cat is called Milo.\nHello!\n");
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_EQ(first.errors, "");
  const ProgramResult second = talk("trip", "What is my cat called?\n");
  EXPECT_EQ(second.output, "Your cat is called Milo.\n") << second.errors;
  EXPECT_EQ(talk("another", "What is my cat called?\n").output, "I don't know that yet.\n");
  EXPECT_EQ(run_program(call({}, "What is my cat called?\n")).output, "I don't know that yet.\n");
}

TEST_F(ChatSessionTest, GoesOnAfterItWasKilled) {
  {
    TerminalProgram program(call({"--session", "trip"}));
    ASSERT_TRUE(program.wait_for("(session \"trip\" is new)")) << program.screen();
    program.type("My cat is called Milo.\n");
    ASSERT_TRUE(program.wait_for("Milo, I will remember that.")) << program.screen();
    ASSERT_TRUE(program.wait_for("> ")) << program.screen();
    program.kill();
  }
  TerminalProgram program(call({"--session", "trip"}));
  ASSERT_TRUE(
      program.wait_for("(session \"trip\" goes on after 1 turn with mini; the last one was:)"))
      << program.screen();
  ASSERT_TRUE(program.wait_for("> My cat is called Milo.")) << program.screen();
  ASSERT_TRUE(program.wait_for("Milo, I will remember that.")) << program.screen();
  ASSERT_TRUE(program.wait_for("> ")) << program.screen();
  program.type("What is my cat called?\n");
  ASSERT_TRUE(program.wait_for("Your cat is called Milo.")) << program.screen();
}

TEST_F(ChatSessionTest, KilledInTheMiddleOfAnAnswerLosesThatTurnOnly) {
  TempFolder model;
  copy_checkpoint(mini_folder(), model);
  talk("trip", "My cat is called Milo.\n");
  make_endless(model);
  {
    ProgramCall endless = call({"--session", "trip"});
    endless.arguments[1] = model.path().string();
    TerminalProgram program(endless);
    ASSERT_TRUE(program.wait_for("the last one was:")) << program.screen();
    ASSERT_TRUE(program.wait_for("> ")) << program.screen();
    program.type("Hello!\n");
    ASSERT_TRUE(program.wait_for("How are you today?")) << program.screen();
    program.kill();
  }
  expect_parts(list().output, {"trip         1  "});
  EXPECT_EQ(talk("trip", "What is my cat called?\n").output, "Your cat is called Milo.\n");
}

TEST_F(ChatSessionTest, ASecondProcessIsRefusedWithTheFirstOnesId) {
  TerminalProgram program(call({"--session", "trip"}));
  ASSERT_TRUE(program.wait_for("is new")) << program.screen();
  expect_failure(talk("trip", "Hello!\n"),
                 {"overloaded", "session \"trip\" is open", "by process "});
  EXPECT_EQ(talk("another", "Hello!\n").exit_code, 0);
}

TEST_F(ChatSessionTest, NewStartsItOverAndSaysSo) {
  talk("trip", "My cat is called Milo.\n");
  TerminalProgram program(call({"--session", "trip"}));
  ASSERT_TRUE(program.wait_for("the last one was:")) << program.screen();
  program.type("/new\n");
  ASSERT_TRUE(program.wait_for("(session \"trip\" starts over; what was said in it is forgotten)"))
      << program.screen();
  program.kill();
  EXPECT_EQ(talk("trip", "What is my cat called?\n").output, "I don't know that yet.\n");
}

TEST_F(ChatSessionTest, KeepsSystemPromptAndEffort) {
  talk("trip", "Hello!\n", {"--system", "Be kind.", "--effort", "7", "--max-tokens", "3"});
  const std::string file = read_whole_file(conversation_file()).value();
  expect_parts(
      file, {"\"system\": \"Be kind.\"", "\"thinking\": true", "\"effort\": 7", "\"reasoning\": "});
  EXPECT_EQ(talk("trip", "Hello!\n", {"--max-tokens", "3"}).exit_code, 0);
  expect_parts(read_whole_file(conversation_file()).value(),
               {"\"system\": \"Be kind.\"", "\"thinking\": true", "\"effort\": 7"});
  expect_failure(talk("trip", "Hello!\n", {"--system", "Be rude."}),
                 {"bad_request", "trip", "--system"});
  EXPECT_EQ(talk("trip", "Hello!\n", {"--effort", "none", "--max-tokens", "3"}).exit_code, 0);
  expect_parts(read_whole_file(conversation_file()).value(), {"\"thinking\": false"});
}

TEST_F(ChatSessionTest, SessionsAreListedLastUsedFirst) {
  EXPECT_EQ(list().output, "No conversations are kept in " + (folder_ / "memory").string() + ".\n");
  talk("one", "Hello!\n");
  talk("two words", "Hello!\nHello!\n");
  const std::vector<std::string> lines = lines_of(list().output);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_TRUE(lines[0].starts_with("session    turns  last use")) << lines[0];
  EXPECT_TRUE(lines[1].starts_with("two words      2  20")) << lines[1];
  EXPECT_TRUE(lines[2].starts_with("one            1  20")) << lines[2];
}

TEST_F(ChatSessionTest, ADamagedConversationIsNamedAndLeftAlone) {
  talk("trip", "Hello!\n");
  const fs::path file = conversation_file();
  const std::string damaged = read_whole_file(file).value().substr(0, 100);
  ASSERT_TRUE(write_whole_file(file, std::as_bytes(std::span(damaged))));
  fs::permissions(file, fs::perms::owner_read | fs::perms::owner_write);
  expect_failure(talk("trip", "Hello!\n"), {"bad_memory", file.string(), "parse error"});
  EXPECT_EQ(read_whole_file(file).value(), damaged);
  const ProgramResult listed = list();
  EXPECT_EQ(listed.exit_code, 0);
  expect_parts(listed.errors, {file.string()});
}

TEST_F(ChatSessionTest, WithoutAMemoryThereIsNoSession) {
  for (const char* option : {"--session", "--sessions"}) {
    std::vector<std::string> more = {option, "--memory", "off"};
    if (std::string(option) == "--session") more.insert(more.begin() + 1, "trip");
    expect_failure(run_program(call(more)), {"bad_request", option, "--memory is off"});
  }
  EXPECT_FALSE(fs::exists(folder_ / "memory"));
}

TEST_F(ChatSessionTest, AMessageThatIsNotUtf8IsLeftOut) {
  const ProgramResult result = talk("trip", "Hello!\n\xFF\nHello!\n");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(lines_of(result.output).size(), 2U) << result.output;
  expect_parts(result.errors, {"bad_request", "not UTF-8"});
}

}  // namespace
}  // namespace locket::cli
