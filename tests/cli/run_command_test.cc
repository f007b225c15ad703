// locket run as a process, with the small model that ships.
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

using test_support::ProgramResult;
using test_support::run_program;
using test_support::TempFolder;

constexpr const char* kStatement = "My cat is called Milo.";
constexpr const char* kAnswer = "Milo, I will remember that.";

std::vector<std::string> run_mini(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"run", mini_folder()};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

nlohmann::json run_for_json(std::vector<std::string> more) {
  more.push_back("--json");
  const ProgramResult result = run_program(run_mini(std::move(more)));
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(lines_of(result.output).size(), 1U) << result.output;
  return nlohmann::json::parse(result.output);
}

TEST(RunCommandTest, PrintsTheAnswerAndNothingElse) {
  const ProgramResult result = run_program(run_mini({"-p", kStatement}));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, std::string(kAnswer) + "\n");
  EXPECT_EQ(result.errors, "");
}

TEST(RunCommandTest, TellsTheSpeedInATerminal) {
  test_support::TerminalProgram program(run_mini({"-p", kStatement}));
  EXPECT_TRUE(program.wait_for(kAnswer)) << program.screen();
  EXPECT_TRUE(program.wait_for(" prompt tokens remembered, read at ")) << program.screen();
  EXPECT_TRUE(program.wait_for(", stop]")) << program.screen();
  EXPECT_EQ(program.wait_for_end(), 0);
}

TEST(RunCommandTest, UsesTheModelThatLocketModelNames) {
  const ProgramResult result = run_program({.arguments = {"run", "-p", kStatement},
                                            .environment = {{"LOCKET_MODEL", mini_folder()}},
                                            .folder = "/"});
  EXPECT_EQ(result.output, std::string(kAnswer) + "\n") << result.errors;
  expect_failure(run_program({.arguments = {"run", "-p", kStatement},
                              .environment = {{"LOCKET_MODEL", "/nowhere"}}}),
                 {"not_found", "LOCKET_MODEL", "/nowhere"});
}

TEST(RunCommandTest, GivesEveryFieldAsJson) {
  const nlohmann::json answer = run_for_json({"-p", kStatement});
  EXPECT_EQ(answer.at("content"), kAnswer);
  EXPECT_EQ(answer.at("reasoning"), nullptr);
  EXPECT_EQ(answer.at("tool_calls"), nlohmann::json::array());
  EXPECT_EQ(answer.at("finish_reason"), "stop");
  EXPECT_GT(answer.at("prompt_tokens"), 5);
  EXPECT_EQ(answer.at("completion_tokens"), answer.at("token_ids").size());
  EXPECT_GT(answer.at("token_ids").size(), 3U);
  for (const char* name : {"load_seconds", "prompt_seconds", "generation_seconds",
                           "prompt_tokens_per_second", "tokens_per_second"}) {
    EXPECT_GT(answer.at("timings").at(name).get<double>(), 0.0) << name;
  }
  EXPECT_EQ(answer.size(), 9U);
  EXPECT_EQ(answer.at("timings").size(), 5U);
}

TEST(RunCommandTest, KeepsReasoningApart) {
  const std::vector<std::string> options = {"-p",   kStatement,     "--effort",
                                            "high", "--max-tokens", "3"};
  const nlohmann::json answer = run_for_json(options);
  EXPECT_TRUE(answer.at("reasoning").is_string());
  EXPECT_EQ(answer.at("finish_reason"), "length");
  const ProgramResult printed = run_program(run_mini(options));
  EXPECT_TRUE(printed.output.starts_with("<reasoning>\n")) << printed.output;
  expect_parts(printed.output, {"\n</reasoning>\n"});
  EXPECT_EQ(printed.output.find('\033'), std::string::npos) << "colours in a pipe";
}

TEST(RunCommandTest, TakesStopStringsAndALimit) {
  nlohmann::json answer = run_for_json({"-p", kStatement, "--stop", "ember"});
  EXPECT_EQ(answer.at("content"), "Milo, I will rem");
  EXPECT_EQ(answer.at("finish_reason"), "stop");
  answer = run_for_json({"-p", kStatement, "--stop", "xyz", "--stop", ", I"});
  EXPECT_EQ(answer.at("content"), "Milo");
  answer = run_for_json({"-p", kStatement, "--max-tokens", "3"});
  EXPECT_EQ(answer.at("finish_reason"), "length");
  EXPECT_EQ(answer.at("completion_tokens"), 3);
}

TEST(RunCommandTest, TheSameSeedGivesTheSameTokensOnAnyNumberOfThreads) {
  const std::vector<std::string> options = {"-p",     "Hello!", "--temperature", "2",
                                            "--seed", "5",      "--max-tokens",  "60"};
  const nlohmann::json first = run_for_json(options);
  for (const char* threads : {"1", "2", "5"}) {
    std::vector<std::string> more = options;
    more.insert(more.end(), {"--threads", threads});
    EXPECT_EQ(run_for_json(more).at("token_ids"), first.at("token_ids")) << threads;
  }
}

TEST(RunCommandTest, EveryModeAndReplayKnowsTheAnswer) {
  for (const char* mode : {"reference", "fast", "wide", "plain"}) {
    for (const char* replay : {"bounded", "exact", "full"}) {
      EXPECT_EQ(run_for_json({"-p", kStatement, "--mode", mode, "--replay", replay}).at("content"),
                kAnswer)
          << mode << ' ' << replay;
    }
  }
}

TEST(RunCommandTest, RepairsBrokenTextInThePrompt) {
  const ProgramResult result = run_program(run_mini({"-p", "\xFF\xC3(", "--max-tokens", "4"}));
  EXPECT_EQ(result.exit_code, 0) << result.errors;
}

class RunMessagesTest : public testing::Test {
 protected:
  ProgramResult run_messages(const std::string& text, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments =
        run_mini({"--messages", folder_.write("request.json", text).string()});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program(std::move(arguments));
  }

  TempFolder folder_;
};

constexpr const char* kConversation =
    R"({"messages": [{"role": "user", "content": "My cat is called Milo."},
                     {"role": "assistant", "content": "Milo, I will remember that."},
                     {"role": "user", "content": "What is my cat called?"}],
        "thinking": {"type": "disabled"}})";

TEST_F(RunMessagesTest, AnswersAConversation) {
  const ProgramResult result = run_messages(kConversation);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.output, "Your cat is called Milo.\n") << result.errors;
}

TEST_F(RunMessagesTest, TheFileAndTheOptionsGoTogether) {
  const std::string limited = R"({"messages": [{"role": "user", "content": "Hello!"}],
                                  "thinking": {"type": "disabled"}, "max_tokens": 2})";
  const ProgramResult result = run_messages(limited, {"--json", "--max-tokens", "5"});
  EXPECT_EQ(nlohmann::json::parse(result.output).at("completion_tokens"), 2) << result.errors;
  EXPECT_EQ(run_messages(kConversation, {"--stop", " called"}).output, "Your cat is\n");
}

TEST_F(RunMessagesTest, RefusesWhatItCannotGive) {
  const std::string start = R"({"messages": [{"role": "user", "content": "Hello!"}], )";
  expect_failure(run_messages(start + R"("n": 2})"), {"unsupported", "request.json", "n is 2"});
  expect_failure(run_messages(start + R"("logprobs": true})"), {"unsupported", "logprobs"});
  expect_failure(
      run_messages(
          R"({"messages": [{"role": "user", "content":
      [{"type": "image_url", "image_url": {"url": "data:image/png;base64,)"
          R"(iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg)"
          R"(gg=="}}]}]})"),
      {"unsupported", "1 image"});
}

TEST_F(RunMessagesTest, NamesFieldsThatNothingReads) {
  const ProgramResult result = run_messages(
      R"({"messages": [{"role": "user", "content": "Hello!"}], "colour": 1, "max_tokens": 1})");
  EXPECT_EQ(result.exit_code, 0);
  expect_parts(result.errors, {"request.json", "ignored", "colour"});
}

TEST_F(RunMessagesTest, NamesTheFileAndWhatIsWrongInIt) {
  expect_failure(run_program(run_mini({"--messages", "/nowhere.json"})),
                 {"not_found", "/nowhere.json"});
  expect_failure(run_messages("hello"), {"bad_request", "request.json"});
  expect_failure(run_messages(""), {"bad_request", "request.json"});
  expect_failure(run_messages("{}"), {"bad_request", "request.json", "messages"});
  expect_failure(run_messages(R"({"messages": [{"role": "singer", "content": "la"}]})"),
                 {"bad_request", "messages[0].role", "singer"});
  expect_failure(run_messages(R"({"messages": [{"role": "user", "content": "\s"}]})"),
                 {"bad_request", "request.json"});
}

TEST(RunCommandTest, RefusesWhatDoesNotFit) {
  expect_failure(run_program(run_mini({"-p", "Hi", "--max-tokens", "1048577"})),
                 {"context_too_long", "1048577", "1048576"});
  expect_failure(run_program(run_mini({"-p", "Hi", "--memory-budget", "1K"})),
                 {"over_budget", "1024"});
}

}  // namespace
}  // namespace locket::cli
