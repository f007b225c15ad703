// Responses: streams that the helpers of the SDKs and Codex can read, and bodies that say the same.
#include "server/responses_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/writer_cases.h"
#include "tests/support/responses_stream.h"

namespace locket::server {
namespace {

using test_support::check_responses_stream;
using test_support::CutCalls;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kChat = chat::ThinkingMode::kChat;

std::vector<StreamEvent> stream_events(const ReplyInfo& info, const ReplyScript& script) {
  return events_of(test_support::stream_of(Dialect::kResponses, info, script));
}

json body_of(const ReplyInfo& info, const ReplyScript& script) {
  return json::parse(reply_body(Dialect::kResponses, info, script.result, {}));
}

std::vector<std::string> types_of(const std::vector<StreamEvent>& events) {
  std::vector<std::string> types;
  for (const StreamEvent& event : events) {
    if (types.empty() || types.back() != event.name) types.push_back(event.name);
  }
  return types;
}

TEST(ResponsesWriterTest, AStreamAddsUpToTheBody) {
  for (const WriterCase& one : whole_answers()) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(one.name);
      const ReplyInfo info = reply_info(one.thinking);
      const ReplyScript script = play({one.choice}, {.seed = seed});
      const StreamCheck check = check_responses_stream(stream_events(info, script));
      EXPECT_THAT(check.problems, IsEmpty());
      EXPECT_EQ(check.body, body_of(info, script));
    }
  }
}

TEST(ResponsesWriterTest, SendsTheEventsInTheOrderThatHelpersNeed) {
  const ScriptedChoice choice = {.start = chat::ReplyStart::kReasoning,
                                 .output = "Think.</think>Look." + block_markup({clock_call()})};
  EXPECT_THAT(
      types_of(stream_events(reply_info(chat::ThinkingMode::kThinking), play({choice}))),
      ::testing::ElementsAre(
          "response.created", "response.in_progress",  //
          "response.output_item.added", "response.content_part.added",
          "response.reasoning_text.delta", "response.reasoning_text.done",
          "response.content_part.done", "response.output_item.done", "response.output_item.added",
          "response.content_part.added", "response.output_text.delta", "response.output_text.done",
          "response.content_part.done", "response.output_item.done", "response.output_item.added",
          "response.function_call_arguments.delta", "response.function_call_arguments.done",
          "response.output_item.done", "response.completed"));
}

TEST(ResponsesWriterTest, OutputItemsHaveTheShapesOfTheDialect) {
  const ScriptedChoice choice = {.start = chat::ReplyStart::kReasoning,
                                 .output = "Think.</think>Look." + block_markup({weather_call()})};
  const json body = body_of(reply_info(chat::ThinkingMode::kThinking), play({choice}));
  EXPECT_EQ(body["id"], "resp_0b1e7c526a514f0e9d536a6f2d6f6f01");
  const json& output = body["output"];
  ASSERT_EQ(output.size(), 3U);
  EXPECT_EQ(output[0]["type"], "reasoning");
  EXPECT_EQ(output[0]["id"], "rs_0b1e7c526a514f0e9d536a6f2d6f6f01_0");
  EXPECT_EQ(output[0]["summary"], json::array());
  EXPECT_EQ(output[0]["content"], json({{{"type", "reasoning_text"}, {"text", "Think."}}}));
  EXPECT_EQ(output[1]["type"], "message");
  EXPECT_EQ(output[1]["role"], "assistant");
  EXPECT_EQ(output[1]["id"], "msg_0b1e7c526a514f0e9d536a6f2d6f6f01_1");
  EXPECT_EQ(output[1]["content"][0]["type"], "output_text");
  EXPECT_EQ(output[1]["content"][0]["annotations"], json::array());
  EXPECT_EQ(output[2]["type"], "function_call");
  EXPECT_EQ(output[2]["id"], "fc_0b1e7c526a514f0e9d536a6f2d6f6f01_2");
  EXPECT_EQ(output[2]["call_id"], "call_00_0abcdefghijklmnopqrstuvw");
  EXPECT_EQ(output[2]["arguments"], R"({"city":"Zürich \"Nord\"\n东","days":[1,2,{"a":null}]})");
  EXPECT_EQ(body["usage"].dump(),
            R"({"input_tokens":40,"input_tokens_details":{"cached_tokens":24},"output_tokens":)" +
                body["usage"]["output_tokens"].dump() +
                R"(,"output_tokens_details":{"reasoning_tokens":)" +
                body["usage"]["output_tokens_details"]["reasoning_tokens"].dump() +
                R"(},"total_tokens":)" + body["usage"]["total_tokens"].dump() + "}");
}

TEST(ResponsesWriterTest, ALimitMakesTheResponseIncomplete) {
  const ScriptedChoice choice = {.output = "This goes on and", .end = chat::FinishReason::kLength};
  const StreamCheck check =
      check_responses_stream(stream_events(reply_info(kChat), play({choice})));
  EXPECT_EQ(check.body["status"], "incomplete");
  EXPECT_EQ(check.body["incomplete_details"], json({{"reason", "max_output_tokens"}}));
  EXPECT_EQ(check.body["output"][0]["status"], "incomplete");
}

TEST(ResponsesWriterTest, MapsFlatNamesBackToTheirNamespace) {
  ReplyInfo info = reply_info(kChat);
  info.namespaces = {{.flat = "pier::open", .name_space = "pier", .name = "open"}};
  const ScriptedChoice choice = {
      .output = block_markup({call_markup("pier::open", {}), call_markup("open", {})})};
  const ReplyScript script = play({choice});
  const StreamCheck check = check_responses_stream(stream_events(info, script));
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_EQ(check.body, body_of(info, script));
  EXPECT_EQ(check.body["output"][0]["name"], "open");
  EXPECT_EQ(check.body["output"][0]["namespace"], "pier");
  EXPECT_EQ(check.body["output"][1]["name"], "open");
  EXPECT_FALSE(check.body["output"][1].contains("namespace"));
}

TEST(ResponsesWriterTest, WritesCallsOfCustomToolsAsTheirText) {
  ReplyInfo info = reply_info(kChat);
  info.custom_tools = {"apply_patch"};
  const std::string patch = "*** Begin Patch\n+\"x\"\n*** End Patch";
  const std::vector<std::pair<test_support::ScriptedParameter, std::string>> rows = {
      {{"input", "true", patch}, patch},
      {{"patch", "true", patch}, patch},
      {{"input", "false", "[1, 2]"}, R"({"input":[1,2]})"}};
  for (const auto& [parameter, expected] : rows) {
    const ReplyScript script =
        play({{.output = block_markup({call_markup("apply_patch", {parameter}), clock_call()})}});
    const StreamCheck check = check_responses_stream(stream_events(info, script));
    EXPECT_THAT(check.problems, IsEmpty());
    EXPECT_EQ(check.body["output"][0]["type"], "custom_tool_call");
    EXPECT_EQ(check.body["output"][0]["input"], expected);
    EXPECT_EQ(check.body["output"][1]["type"], "function_call");
    EXPECT_EQ(check.body, body_of(info, script));
  }
}

TEST(ResponsesWriterTest, ACallThatWasCutIsNeverDone) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const ReplyScript script = play({cut_call()}, {.seed = seed});
    const ReplyInfo info = reply_info(kChat);
    const std::vector<StreamEvent> events = stream_events(info, script);
    const StreamCheck check = check_responses_stream(events, CutCalls::kAllowed);
    EXPECT_THAT(check.problems, IsEmpty());
    EXPECT_EQ(check.body, body_of(info, script));
    EXPECT_EQ(check.body["status"], "incomplete");
    EXPECT_EQ(check.body["output"].size(), 1U);
    EXPECT_THAT(check_responses_stream(events).problems, Not(IsEmpty()));
  }
}

TEST(ResponsesWriterTest, AWholeCallBeforeACutOneIsInTheStreamOnly) {
  ScriptedChoice choice = cut_call();
  choice.output.insert(choice.output.find("<｜DSML｜ invoke"), clock_call());
  const ReplyScript script = play({choice});
  const ReplyInfo info = reply_info(kChat);
  const StreamCheck check = check_responses_stream(stream_events(info, script), CutCalls::kAllowed);
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_EQ(check.body["output"].size(), 2U);
  EXPECT_EQ(check.body["status"], "incomplete");
  EXPECT_EQ(body_of(info, script)["output"].size(), 1U);
}

TEST(ResponsesWriterTest, ABrokenCallKeepsItsPlace) {
  const ReplyScript script = play({broken_and_whole_call()});
  const StreamCheck check =
      check_responses_stream(stream_events(reply_info(kChat), script), CutCalls::kAllowed);
  EXPECT_THAT(check.problems, IsEmpty());
  ASSERT_EQ(check.body["output"].size(), 1U);
  EXPECT_EQ(check.body["output"][0]["name"], "clock");
}

TEST(ResponsesWriterTest, AFailureIsAFailedResponseAndTheEnd) {
  const ReplyScript script = play({{.output = "some text"}});
  const auto writer = make_responses_writer(reply_info(kChat));
  std::string stream = writer->begin();
  stream += writer->update(script.updates.front());
  stream += writer->fail({ErrorCode::kContextTooLong, "5 tokens, 4 fit"});
  const std::vector<StreamEvent> events = events_of(stream);
  const StreamCheck check = check_responses_stream(events);
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_EQ(events.back().name, "response.failed");
  EXPECT_EQ(check.error["code"], "context_length_exceeded");
  EXPECT_THAT(check.error["message"].get<std::string>(), HasSubstr("5 tokens, 4 fit"));
}

TEST(ResponsesWriterTest, ABillAddsTheExtension) {
  const ReplyScript script = play({{.output = "a"}});
  const json body =
      json::parse(reply_body(Dialect::kResponses, reply_info(kChat), script.result, some_bill()));
  EXPECT_EQ(body["usage"]["locket"]["bill"]["total"], 0.875);
}

// One deviation at a time: what breaks some client is not the grammar.
TEST(ResponsesWriterTest, TheGrammarRefusesWhatBreaksClients) {
  const ScriptedChoice choice = {.start = chat::ReplyStart::kReasoning,
                                 .output = "Think.</think>Look." + block_markup({weather_call()})};
  const std::vector<StreamEvent> good =
      stream_events(reply_info(chat::ThinkingMode::kThinking), play({choice}));
  ASSERT_THAT(check_responses_stream(good).problems, IsEmpty());
  const auto refuses = [](const std::string& what, const std::vector<StreamEvent>& events) {
    EXPECT_THAT(check_responses_stream(events).problems, Not(IsEmpty())) << what;
  };
  for (const std::string& type : types_of(good)) refuses("no " + type, without_type(good, type));
  refuses("no type", changed_all(good, [](json& data) { data.erase("type"); }));
  refuses("no number", changed_all(good, [](json& data) { data.erase("sequence_number"); }));
  std::vector<StreamEvent> nameless = good;
  for (StreamEvent& event : nameless) event.name.clear();
  refuses("no event lines", nameless);
  refuses("[DONE]", [&] {
    std::vector<StreamEvent> events = good;
    events.push_back({"", "[DONE]"});
    return events;
  }());
  const auto in_last = [&](const std::function<void(json&)>& change) {
    return changed(good, [&](json& data) {
      if (data["type"] != "response.completed") return false;
      change(data["response"]);
      return true;
    });
  };
  refuses("no usage", in_last([](json& response) { response["usage"] = nullptr; }));
  refuses("usage without details",
          in_last([](json& response) { response["usage"].erase("input_tokens_details"); }));
  refuses("empty output", in_last([](json& response) { response["output"] = json::array(); }));
  refuses("another id", in_last([](json& response) { response["id"] = "resp_x"; }));
  refuses("not nested", changed(good, [](json& data) {
            if (data["type"] != "response.completed") return false;
            const json response = data["response"];
            data.erase("response");
            data.update(response);
            return true;
          }));
  refuses("one output_index", changed_all(good, [](json& data) {
            if (data.contains("output_index")) data["output_index"] = 0;
          }));
  refuses("call done without arguments", changed(good, [](json& data) {
            if (data["type"] != "response.output_item.done") return false;
            if (data["item"]["type"] != "function_call") return false;
            data["item"]["arguments"] = "";
            return true;
          }));
}

}  // namespace
}  // namespace locket::server
