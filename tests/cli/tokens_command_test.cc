#include <gtest/gtest.h>
#include <iostream>
#include <sstream>
#include <string>

#include "cli/commands.h"
#include "tests/support/tokenizer_files.h"

namespace locket::cli {
namespace {

using nlohmann::json;

struct Ran {
  int exit_code = 0;
  std::string output;
  std::string errors;
};

// The command with `input` as stdin.
Ran run(const TokensOptions& options, const std::string& input) {
  std::istringstream in(input);
  std::ostringstream out;
  std::ostringstream errors;
  auto* old_in = std::cin.rdbuf(in.rdbuf());
  auto* old_out = std::cout.rdbuf(out.rdbuf());
  auto* old_errors = std::cerr.rdbuf(errors.rdbuf());
  std::cin.clear();
  const int exit_code = run_tokens(options);
  std::cin.rdbuf(old_in);
  std::cout.rdbuf(old_out);
  std::cerr.rdbuf(old_errors);
  return {exit_code, out.str(), errors.str()};
}

TokensOptions small_options() {
  TokensOptions options;
  options.tokenizer = std::filesystem::path(LOCKET_TEST_DATA) / "text" / "small_tokenizer.json";
  options.json = true;
  return options;
}

TEST(TokensCommandTest, AnswersEachLineInOrderAndGoesOnAfterAWrongOne) {
  const Ran ran = run(small_options(),
                      "{\"text\": \"ab\"}\n\n{\"text\": \"\\ud83d\"}\r\n{\"base64\": \"YWI=\"}");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.errors, "");
  std::istringstream lines(ran.output);
  std::string line;
  std::getline(lines, line);
  const json first = json::parse(line);
  std::getline(lines, line);
  EXPECT_EQ(json::parse(line).at("error").at("line"), 3);
  std::getline(lines, line);
  EXPECT_EQ(json::parse(line), first);
  EXPECT_FALSE(std::getline(lines, line));
}

TEST(TokensCommandTest, TurnsItsOwnAnswersBackIntoText) {
  const std::string question = "{\"text\": \"The ferry, 1984: 渡轮 😀\"}\n";
  const Ran encoded = run(small_options(), question);
  EXPECT_EQ(encoded.exit_code, 0);
  TokensOptions back = small_options();
  back.decode = true;
  const Ran decoded = run(back, encoded.output);
  EXPECT_EQ(decoded.exit_code, 0);
  EXPECT_EQ(json::parse(decoded.output).at("text"), json::parse(question).at("text"));
}

TEST(TokensCommandTest, NamesATokenizerThatIsNotThere) {
  TokensOptions options;
  options.model = "/no/such/model";
  const Ran ran = run(options, "{\"text\": \"a\"}\n");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_EQ(ran.output, "");
  EXPECT_NE(ran.errors.find("/no/such/model/tokenizer.json"), std::string::npos) << ran.errors;
}

}  // namespace
}  // namespace locket::cli
