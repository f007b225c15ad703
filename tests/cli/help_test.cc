// What the program says about itself, and what it says to wrong use.
#include "tests/cli/program_cases.h"

namespace locket::cli {
namespace {

using test_support::ProgramResult;
using test_support::run_program;

// The names that the program lists under "Commands:".
std::vector<std::string> listed_commands() {
  std::vector<std::string> names;
  bool is_listing = false;
  for (const std::string& line : lines_of(run_program({"--help"}).output)) {
    if (is_listing && line.empty()) break;
    if (is_listing) names.push_back(line.substr(2, line.find(' ', 2) - 2));
    if (line == "Commands:") is_listing = true;
  }
  return names;
}

void expect_narrow(const std::string& text) {
  for (const std::string& line : lines_of(text)) EXPECT_LE(line.size(), 100U) << line;
}

TEST(HelpTest, EveryCommandExplainsItself) {
  const std::vector<std::string> commands = listed_commands();
  EXPECT_GE(commands.size(), 9U);
  for (const std::string& command : commands) {
    const ProgramResult result = run_program({command, "--help"});
    EXPECT_EQ(result.exit_code, 0) << command;
    EXPECT_EQ(result.errors, "") << command;
    expect_parts(result.output, {"Usage: locket " + command, "--help", "Example:\n  "});
    expect_narrow(result.output);
    EXPECT_EQ(run_program({command, "-h"}).output, result.output);
  }
}

TEST(HelpTest, TheOverviewNamesTheHelpOfCommands) {
  const ProgramResult result = run_program({"--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.errors, "");
  expect_parts(result.output, {"locket COMMAND --help", "demo", "chat", "run", "trace"});
  expect_narrow(result.output);
}

TEST(HelpTest, PrintsTheVersion) {
  const ProgramResult result = run_program({"--version"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_TRUE(result.output.starts_with("locket ")) << result.output;
  EXPECT_EQ(lines_of(result.output).size(), 1U);
}

TEST(HelpTest, WithoutACommandItPrintsTheHelpAndFails) {
  const ProgramResult result = run_program(std::vector<std::string>{});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.output, "");
  EXPECT_EQ(result.errors, run_program({"--help"}).output);
}

TEST(HelpTest, WrongUseNamesTheOptionAndTheHelp) {
  struct Row {
    std::vector<std::string> arguments;
    std::string part;
  };
  const std::vector<Row> rows = {
      {{"sing"}, "sing"},
      {{"--loud"}, "--loud"},
      {{"run"}, "-p"},
      {{"run", "-p", "Hi", "--messages", "file.json"}, "--messages"},
      {{"run", "-p", "Hi", "--loud"}, "--loud"},
      {{"run", "-p", "Hi", "model", "model"}, "model"},
      {{"run", "-p"}, "--prompt"},
      {{"run", "-p", "Hi", "--mode", "sloppy"}, "--mode"},
      {{"run", "-p", "Hi", "--replay", "none"}, "--replay"},
      {{"run", "-p", "Hi", "--threads", "-1"}, "--threads"},
      {{"run", "-p", "Hi", "--memory-budget", "4X"}, "--memory-budget"},
      {{"run", "-p", "Hi", "--temperature", "2.1"}, "--temperature"},
      {{"run", "-p", "Hi", "--temperature", "nan"}, "--temperature"},
      {{"run", "-p", "Hi", "--top-p", "1.1"}, "--top-p"},
      {{"run", "-p", "Hi", "--min-p", "-0.1"}, "--min-p"},
      {{"run", "-p", "Hi", "--top-k", "1.5"}, "--top-k"},
      {{"run", "-p", "Hi", "--seed", "18446744073709551616"}, "--seed"},
      {{"run", "-p", "Hi", "--max-tokens", "many"}, "--max-tokens"},
      {{"run", "-p", "Hi", "--max-tokens", "010"}, "--max-tokens"},
      {{"run", "-p", "Hi", "--effort", "101"}, "--effort"},
      {{"chat", "--effort", "much"}, "--effort"},
      {{"chat", "--session"}, "--session"},
      {{"run", "-p", "Hi", "--memory-quota", "4X"}, "--memory-quota"},
      {{"demo", "--conversations", "0"}, "--conversations"},
      {{"trace", "-o", "file"}, "--ids"},
      {{"trace", "--ids", "file"}, "--output"},
      {{"trace", "--ids", "file", "-o", "file", "--what", "logits,colour"}, "--what"},
      {{"trace", "--ids", "file", "-o", "file", "--layer", "1"}, "--from"},
      {{"trace", "--ids", "file", "-o", "file", "--from", "file"}, "--layer"},
      {{"trace", "--ids", "file", "-o", "file", "--decode-from", "0"}, "--decode-from"},
      {{"trace", "--ids", "file", "-o", "file", "--index-scores", "f16"}, "--index-scores"}};
  for (const Row& row : rows) {
    const ProgramResult result = run_program(row.arguments);
    SCOPED_TRACE(testing::PrintToString(row.arguments));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.output, "");
    EXPECT_EQ(lines_of(result.errors).size(), 2U) << result.errors;
    expect_parts(result.errors, {row.part, "--help explains the options"});
  }
}

}  // namespace
}  // namespace locket::cli
