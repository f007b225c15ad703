// All dialects: whatever the model writes, the stream keeps its grammar.
#include "server/reply_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "tests/server/writer_cases.h"
#include "tests/support/chat_stream.h"
#include "tests/support/messages_stream.h"
#include "tests/support/responses_stream.h"

namespace locket::server {
namespace {

using ::testing::IsEmpty;

StreamCheck check_stream(Dialect dialect, const std::vector<StreamEvent>& events) {
  switch (dialect) {
    case Dialect::kChat:
      return test_support::check_chat_stream(events);
    case Dialect::kCompletions:
      return test_support::check_completion_stream(events);
    case Dialect::kResponses:
      return test_support::check_responses_stream(events, test_support::CutCalls::kAllowed);
    case Dialect::kMessages:
      return test_support::check_messages_stream(events);
    case Dialect::kCount:
      break;
  }
  ADD_FAILURE() << "no such dialect";
  return {};
}

// Fragments of markup and text, in any order.
std::string random_output(std::mt19937_64& random) {
  const std::vector<std::string> fragments = {"</think>",
                                              "text ",
                                              "东\U0001F600",
                                              "\n\n",
                                              "<｜DSML｜ calls>\n",
                                              "</｜DSML｜ calls>",
                                              "<｜DSML｜ invoke name=\"f\">\n",
                                              "</｜DSML｜ invoke>\n",
                                              "<｜DSML｜ parameter name=\"a\" string=\"true\">",
                                              "</｜DSML｜ parameter>\n",
                                              "<｜DSML｜ parameter name=\"b\\x\" string=\"false\">",
                                              "[1.50, \"\\u00e9\"]",
                                              "\\",
                                              "\"",
                                              weather_call(),
                                              block_markup({weather_call(), clock_call()}),
                                              "<｜DSML｜ parameter bad>"};
  std::string out;
  for (std::uint64_t count = random() % 12; count > 0; --count) {
    out += fragments[random() % fragments.size()];
  }
  return out;
}

TEST(ReplyWriterTest, AnyOutputGivesAStreamThatClientsCanRead) {
  std::mt19937_64 random(3);
  for (std::uint64_t round = 0; round < 600; ++round) {
    const bool thinks = random() % 2 == 0;
    ScriptedChoice choice;
    choice.output = random_output(random);
    if (thinks) choice.start = chat::ReplyStart::kReasoning;
    if (random() % 2 == 0) choice.end = chat::FinishReason::kLength;
    if (random() % 4 == 0) choice.stop = {"text", "\n\n"};
    ReplyInfo info = reply_info(thinks ? chat::ThinkingMode::kThinking : chat::ThinkingMode::kChat);
    info.stop = choice.stop;
    if (random() % 3 == 0) info.custom_tools = {"f"};
    const ReplyScript script = play({choice}, {.seed = round});
    for (std::size_t number = 0; number < static_cast<std::size_t>(Dialect::kCount); ++number) {
      const auto dialect = static_cast<Dialect>(number);
      const StreamCheck check = check_stream(
          dialect, events_of(test_support::stream_of(dialect, info, script, some_bill())));
      ASSERT_THAT(check.problems, IsEmpty()) << choice.output;
      const json body = json::parse(reply_body(dialect, info, script.result, some_bill()));
      EXPECT_EQ(check.body["usage"], body["usage"]);
      if (script.result.choices[0].reply.broken_calls > 0) continue;
      EXPECT_EQ(check.body, body) << choice.output;
    }
  }
}

TEST(ReplyWriterTest, NoStreamHasAnIdField) {
  const ReplyScript script = play({{.output = "\nid: 3\n\nretry: 4\n"}});
  for (std::size_t number = 0; number < static_cast<std::size_t>(Dialect::kCount); ++number) {
    const auto dialect = static_cast<Dialect>(number);
    const std::string stream =
        test_support::stream_of(dialect, reply_info(chat::ThinkingMode::kChat), script);
    EXPECT_EQ(("\n" + stream).find("\nid:"), std::string::npos);
    EXPECT_EQ(("\n" + stream).find("\nretry:"), std::string::npos);
  }
}

}  // namespace
}  // namespace locket::server
