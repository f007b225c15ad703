// `locket render` and `locket parse`, run as programs.
#include <gtest/gtest.h>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/chat/chat_rows.h"
#include "tests/support/run_program.h"

namespace locket::chat {
namespace {

struct ProgramRun {
  test_support::ProgramResult program;
  std::vector<OrderedJson> lines;
};

// Runs the program and reads every line that it prints.
ProgramRun run_on_lines(std::vector<std::string> arguments, const std::string& input) {
  ProgramRun run{test_support::run_program(std::move(arguments), input), {}};
  std::istringstream lines(run.program.output);
  for (std::string line; std::getline(lines, line);) {
    run.lines.push_back(OrderedJson::parse(line, nullptr, false));
  }
  return run;
}

std::string small_tokenizer() { return LOCKET_TEST_DATA "/text/small_tokenizer.json"; }

TEST(RenderCommandTest, AnswersEveryLineWithItsPrompt) {
  const ProgramRun run = run_on_lines(
      {"render", "--tokenizer", small_tokenizer()},
      R"({"thinking": {"type": "disabled"}, "messages": [{"role": "user", "content": "hi"}]})"
      "\n\n"
      R"({"messages": []})"
      "\n{\"messages\": \"\xFF\"}\n");
  EXPECT_EQ(run.program.exit_code, 0);
  ASSERT_EQ(run.lines.size(), 3U);
  const OrderedJson& prompt = run.lines[0];
  EXPECT_EQ(prompt["text"], "<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜></think>");
  EXPECT_EQ(prompt["segments"][0], (OrderedJson{"c", "<｜begin▁of▁sentence｜>"}));
  EXPECT_EQ(prompt["segments"][2], (OrderedJson{"t", "hi"}));
  EXPECT_EQ(prompt["ids"].size(), prompt["n_tokens"]);
  EXPECT_EQ(prompt["n_images"], 0);
  EXPECT_EQ(prompt["parser"].dump(), R"({"start":"content","tool_calls":false,"json":false})");
  EXPECT_EQ(run.lines[1]["error"]["code"], "bad_request");
  EXPECT_NE(run.lines[2]["error"]["message"].get<std::string>().find("not UTF-8"),
            std::string::npos);
}

TEST(RenderCommandTest, KeepsEveryAnswerOnOneLineForEveryReader) {
  const std::string request =
      R"({"messages": [{"role": "user", "content": "a\u2028b\u2029c\u0085d\u000be"}]})";
  const ProgramRun run = run_on_lines({"render", "--tokenizer", small_tokenizer()}, request);
  ASSERT_EQ(run.lines.size(), 1U);
  EXPECT_TRUE(run.program.output.find("a\\u2028b\\u2029c\\u0085d\\u000be") != std::string::npos);
  EXPECT_NE(run.lines[0]["text"].get<std::string>().find("a\u2028b\u2029c"), std::string::npos);
}

TEST(RenderCommandTest, FailsWithoutItsTokenizer) {
  EXPECT_EQ(
      run_on_lines({"render", "--tokenizer", "/nowhere/tokenizer.json"}, "").program.exit_code, 1);
}

TEST(ParseCommandTest, TakesBothFormsOfALine) {
  const std::string output =
      R"(r</think>a\n\n<｜DSML｜ calls>\n<｜DSML｜ invoke name=\"f\">\n</｜DSML｜ invoke>\n)"
      R"(</｜DSML｜ calls>)";
  const std::string input = R"({"text": ")" + output +
                            R"(", "finish": "stop", "start": "reasoning"})"
                            "\n" +
                            R"({"input": {"text": ")" + output +
                            R"(", "finish": null}, "parser": {"start": "reasoning",
                               "tool_calls": true, "json": false, "stop": []}})";
  std::string one_line_each = input;
  for (std::size_t at = one_line_each.find(",\n "); at != std::string::npos;
       at = one_line_each.find(",\n ")) {
    one_line_each.replace(at, 2, ",");
  }
  const std::vector<std::vector<std::string>> calls = {
      {"parse"}, {"parse", "--chunks", "1"}, {"parse", "--chunks", "7"}};
  for (const std::vector<std::string>& call : calls) {
    const ProgramRun run = run_on_lines(call, one_line_each + "\n");
    EXPECT_EQ(run.program.exit_code, 0);
    ASSERT_EQ(run.lines.size(), 2U);
    for (const OrderedJson& line : run.lines) {
      EXPECT_EQ(line.dump(),
                R"({"reasoning":"r","content":"a","tool_calls":[{"name":"f","arguments":"{}"}],)"
                R"("finish_reason":"tool_calls"})");
    }
  }
}

TEST(ParseCommandTest, NamesWhatIsWrongWithALine) {
  const ProgramRun run =
      run_on_lines({"parse"}, "{\"text\": \"a\", \"start\": \"middle\"}\n[]\n{}\n");
  ASSERT_EQ(run.lines.size(), 3U);
  EXPECT_EQ(run.lines[0]["error"]["message"],
            "start is \"middle\"; it must be one of content, reasoning, reasoning_continued, "
            "content_continued, calls");
  EXPECT_EQ(run.lines[1]["error"]["line"], 2);
  EXPECT_EQ(run.lines[2]["error"]["message"], "text is missing; it must be a string");
}

}  // namespace
}  // namespace locket::chat
