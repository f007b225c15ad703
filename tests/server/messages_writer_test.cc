// Messages: streams that the SDKs, Claude Code and other agents can read, and bodies that say the
// same.
#include "server/messages_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/writer_cases.h"
#include "tests/support/messages_stream.h"

namespace locket::server {
namespace {

using test_support::check_messages_stream;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kChat = chat::ThinkingMode::kChat;

std::vector<StreamEvent> stream_events(const ReplyInfo& info, const ReplyScript& script) {
  return events_of(test_support::stream_of(Dialect::kMessages, info, script));
}

json body_of(const ReplyInfo& info, const ReplyScript& script) {
  return json::parse(reply_body(Dialect::kMessages, info, script.result, {}));
}

TEST(MessagesWriterTest, AStreamAddsUpToTheBody) {
  for (const WriterCase& one : whole_answers()) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(one.name);
      ReplyInfo info = reply_info(one.thinking);
      info.stop = one.choice.stop;
      const ReplyScript script = play({one.choice}, {.seed = seed});
      const StreamCheck check = check_messages_stream(stream_events(info, script));
      EXPECT_THAT(check.problems, IsEmpty());
      EXPECT_EQ(check.body, body_of(info, script));
    }
  }
}

TEST(MessagesWriterTest, BlocksHaveTheShapesOfTheDialect) {
  const ScriptedChoice choice = {.start = chat::ReplyStart::kReasoning,
                                 .output = "Think.</think>Look." + block_markup({weather_call()})};
  const json body = body_of(reply_info(chat::ThinkingMode::kThinking), play({choice}));
  EXPECT_EQ(body["id"], "msg_0b1e7c526a514f0e9d536a6f2d6f6f01");
  EXPECT_EQ(body["content"][0],
            json({{"type", "thinking"}, {"thinking", "Think."}, {"signature", ""}}));
  EXPECT_EQ(body["content"][1], json({{"type", "text"}, {"text", "Look."}}));
  EXPECT_EQ(body["content"][2].dump(),
            R"({"id":"call_00_0abcdefghijklmnopqrstuvw",)"
            R"("input":{"city":"Zürich \"Nord\"\n东","days":[1,2,{"a":null}]},)"
            R"("name":"get_weather","type":"tool_use"})");
  EXPECT_EQ(body["stop_reason"], "tool_use");
  EXPECT_EQ(body["stop_sequence"], nullptr);
}

TEST(MessagesWriterTest, CountsTheRememberedTokensApart) {
  const ReplyInfo info = reply_info(kChat);
  const ReplyScript script = play({{.output = "a"}});
  EXPECT_EQ(body_of(info, script)["usage"].dump(),
            R"({"cache_creation_input_tokens":0,"cache_read_input_tokens":24,"input_tokens":16,)"
            R"("output_tokens":1})");
  const json start = json::parse(events_of(make_messages_writer(info)->begin()).at(0).data);
  EXPECT_EQ(start["message"]["usage"]["input_tokens"], 40);
  const json with = json::parse(reply_body(Dialect::kMessages, info, script.result, some_bill()));
  EXPECT_EQ(with["usage"]["locket"]["bill"]["total"], 0.875);
}

// D10
TEST(MessagesWriterTest, SaysWhichStopSequenceMatched) {
  const ScriptedChoice choice = {.output = "One END two", .stop = {"never", "END"}};
  ReplyInfo info = reply_info(kChat);
  info.stop = choice.stop;
  const ReplyScript script = play({choice});
  const StreamCheck check = check_messages_stream(stream_events(info, script));
  for (const json& message : {check.body, body_of(info, script)}) {
    EXPECT_EQ(message["stop_reason"], "stop_sequence");
    EXPECT_EQ(message["stop_sequence"], "END");
    EXPECT_EQ(message["content"][0]["text"], "One ");
  }
}

TEST(MessagesWriterTest, ReasonsForTheEndAreThoseOfTheDialect) {
  const auto reason = [](const ScriptedChoice& choice) {
    return body_of(reply_info(kChat), play({choice}))["stop_reason"];
  };
  EXPECT_EQ(reason({.output = "a"}), "end_turn");
  EXPECT_EQ(reason({.output = "a", .end = chat::FinishReason::kLength}), "max_tokens");
  EXPECT_EQ(reason({.output = "a", .end = chat::FinishReason::kContentFilter}), "refusal");
  EXPECT_EQ(reason({.output = block_markup({clock_call()})}), "tool_use");
}

TEST(MessagesWriterTest, ABlockThatWasCutIsStopped) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const ReplyScript script = play({cut_call()}, {.seed = seed});
    const StreamCheck check = check_messages_stream(stream_events(reply_info(kChat), script));
    EXPECT_THAT(check.problems, IsEmpty());
    EXPECT_EQ(check.body["stop_reason"], "max_tokens");
    EXPECT_EQ(check.body["content"][1]["type"], "tool_use");
    EXPECT_EQ(body_of(reply_info(kChat), script)["content"].size(), 1U);
  }
}

TEST(MessagesWriterTest, ABrokenCallIsStoppedBeforeTheNext) {
  const ReplyScript script = play({broken_and_whole_call()});
  const StreamCheck check = check_messages_stream(stream_events(reply_info(kChat), script));
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_EQ(check.body["content"][1]["name"], "clock");
}

TEST(MessagesWriterTest, ArgumentsThatAreNoObjectBecomeOne) {
  const ReplyScript script =
      play({{.output = block_markup({call_markup("f", {{"x", "false", "not json"}})})}});
  const json body = body_of(reply_info(kChat), script);
  EXPECT_EQ(body["content"][0]["input"], json({{"raw_arguments", "{\"x\":not json}"}}));
}

TEST(MessagesWriterTest, KeepsTheDigitsOfLargeIntegers) {
  const ReplyScript script = play(
      {{.output = block_markup({call_markup("f", {{"x", "false", "123456789012345678901"}})})}});
  EXPECT_THAT(reply_body(Dialect::kMessages, reply_info(kChat), script.result, {}),
              ::testing::HasSubstr(R"("input":{"x":123456789012345678901})"));
}

TEST(MessagesWriterTest, AFailureIsAnErrorEventAndTheEnd) {
  const ReplyScript script = play({{.output = "some text"}});
  const auto writer = make_messages_writer(reply_info(kChat));
  std::string stream = writer->begin();
  stream += writer->update(script.updates.front());
  stream += writer->fail({ErrorCode::kOverloaded, "full"});
  const std::vector<StreamEvent> events = events_of(stream);
  const StreamCheck check = check_messages_stream(events);
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_EQ(events.back().name, "error");
  EXPECT_EQ(check.error, json({{"type", "rate_limit_error"}, {"message", "full"}}));
}

TEST(MessagesWriterTest, KeepsAliveWithPings) {
  EXPECT_EQ(make_messages_writer(reply_info(kChat))->keep_alive(),
            "event: ping\ndata: {\"type\":\"ping\"}\n\n");
}

// One deviation at a time: what breaks some client is not the grammar.
TEST(MessagesWriterTest, TheGrammarRefusesWhatBreaksClients) {
  const ScriptedChoice choice = {.start = chat::ReplyStart::kReasoning,
                                 .output = "Think.</think>Look." + block_markup({weather_call()})};
  const std::vector<StreamEvent> good =
      stream_events(reply_info(chat::ThinkingMode::kThinking), play({choice}));
  ASSERT_THAT(check_messages_stream(good).problems, IsEmpty());
  const auto refuses = [](const std::string& what, const std::vector<StreamEvent>& events) {
    EXPECT_THAT(check_messages_stream(events).problems, Not(IsEmpty())) << what;
  };
  for (const char* type : {"message_start", "message_stop", "message_delta", "content_block_start",
                           "content_block_stop"}) {
    refuses(std::string("no ") + type, without_type(good, type));
  }
  EXPECT_THAT(check_messages_stream(without_type(good, "ping")).problems, IsEmpty());
  std::vector<StreamEvent> nameless = good;
  for (StreamEvent& event : nameless) event.name.clear();
  refuses("no event lines", nameless);
  refuses("no index", changed_all(good, [](json& data) { data.erase("index"); }));
  refuses("one index", changed_all(good, [](json& data) {
            if (data.contains("index")) data["index"] = 0;
          }));
  const auto in_end = [&](const std::function<void(json&)>& change) {
    return changed(good, [&](json& data) {
      if (data["type"] != "message_delta") return false;
      change(data);
      return true;
    });
  };
  refuses("no stop_reason", in_end([](json& data) { data["delta"].erase("stop_reason"); }));
  refuses("no usage", in_end([](json& data) { data.erase("usage"); }));
  refuses("half of usage", in_end([](json& data) { data["usage"].erase("input_tokens"); }));
  std::vector<StreamEvent> longer = good;
  longer.push_back({"", "[DONE]"});
  refuses("[DONE]", longer);
  std::vector<StreamEvent> swapped = good;
  std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
  refuses("events out of order", swapped);
}

}  // namespace
}  // namespace locket::server
