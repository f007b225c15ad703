// Chat Completions: streams that every known client can read, and bodies that say the same.
#include "server/chat_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/writer_cases.h"
#include "tests/support/chat_stream.h"

namespace locket::server {
namespace {

using test_support::ChatExpectation;
using test_support::check_chat_stream;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr auto kChat = chat::ThinkingMode::kChat;
constexpr auto kThinking = chat::ThinkingMode::kThinking;

std::string stream_of(const ReplyInfo& info, const ReplyScript& script) {
  return test_support::stream_of(Dialect::kChat, info, script);
}

json body_of(const ReplyInfo& info, const ReplyScript& script) {
  return json::parse(reply_body(Dialect::kChat, info, script.result, {}));
}

// A good stream with reasoning, text and two calls.
std::vector<StreamEvent> good_stream() {
  const ScriptedChoice choice = {
      .start = chat::ReplyStart::kReasoning,
      .output = "Think.</think>Look." + block_markup({weather_call(), clock_call()})};
  return events_of(stream_of(reply_info(kThinking), play({choice})));
}

bool is_call_chunk(const json& data) { return data["choices"][0]["delta"].contains("tool_calls"); }

TEST(ChatWriterTest, AStreamAddsUpToTheBody) {
  for (const WriterCase& one : whole_answers()) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      SCOPED_TRACE(one.name);
      ReplyInfo info = reply_info(one.thinking);
      info.wants_stream_usage = seed % 2 == 0;
      const ReplyScript script = play({one.choice}, {.seed = seed});
      const StreamCheck check = check_chat_stream(events_of(stream_of(info, script)),
                                                  {.wants_usage = info.wants_stream_usage});
      EXPECT_THAT(check.problems, IsEmpty());
      EXPECT_EQ(check.body, body_of(info, script));
    }
  }
}

TEST(ChatWriterTest, BeginsWithTheRoleAndTheEmptyTextOfItsMode) {
  const auto first = [](const ReplyInfo& info) {
    return json::parse(events_of(make_chat_writer(info)->begin()).at(0).data)["choices"][0];
  };
  EXPECT_EQ(first(reply_info(kThinking)).dump(),
            R"({"delta":{"content":null,"reasoning_content":"","role":"assistant"},)"
            R"("finish_reason":null,"index":0,"logprobs":null})");
  EXPECT_EQ(first(reply_info(kChat))["delta"], json({{"role", "assistant"}, {"content", ""}}));
}

TEST(ChatWriterTest, EndsWithUsageOnTheFinishAndDone) {
  const ReplyScript script = play({{.output = "a"}});
  const std::vector<StreamEvent> events = events_of(stream_of(reply_info(kChat), script));
  ASSERT_EQ(events.size(), 4U);
  const json finish = json::parse(events[2].data);
  EXPECT_EQ(finish["choices"][0]["delta"], json({{"content", ""}}));
  EXPECT_EQ(finish["choices"][0]["finish_reason"], "stop");
  EXPECT_EQ(finish["usage"].dump(),
            R"({"completion_tokens":1,"completion_tokens_details":{"reasoning_tokens":0},)"
            R"("prompt_cache_hit_tokens":24,"prompt_cache_miss_tokens":16,"prompt_tokens":40,)"
            R"("prompt_tokens_details":{"cached_tokens":24},"total_tokens":41})");
  EXPECT_EQ(events[3].data, "[DONE]");
}

TEST(ChatWriterTest, PutsUsageIntoAChunkOfItsOwnWhereThatIsWanted) {
  const ReplyScript script = play({{.output = "a"}});
  for (const bool is_wanted : {false, true}) {
    ReplyInfo info = reply_info(kChat);
    info.usage_chunk = UsageChunk::kOwn;
    info.wants_stream_usage = is_wanted;
    const ChatExpectation expectation = {.wants_usage = is_wanted, .usage_chunk = UsageChunk::kOwn};
    const StreamCheck check = check_chat_stream(events_of(stream_of(info, script)), expectation);
    EXPECT_THAT(check.problems, IsEmpty());
    EXPECT_EQ(check.body["usage"].is_null(), !is_wanted);
  }
}

TEST(ChatWriterTest, WritesCallsAsClientsWriteThemBack) {
  const ReplyScript script = play({{.output = block_markup({weather_call(), clock_call()})}});
  const json calls = body_of(reply_info(kChat), script)["choices"][0]["message"]["tool_calls"];
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0]["function"]["arguments"],
            R"({"city":"Zürich \"Nord\"\n东","days":[1,2,{"a":null}]})");
  EXPECT_EQ(calls[1].dump(),
            R"({"function":{"arguments":"{}","name":"clock"},)"
            R"("id":"call_01_0abcdefghijklmnopqrstuvw","index":1,"type":"function"})");
}

TEST(ChatWriterTest, ACutCallEndsWithLengthAndIsNotInTheBody) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const ReplyScript script = play({cut_call()}, {.seed = seed});
    const ReplyInfo info = reply_info(kChat);
    const StreamCheck check = check_chat_stream(events_of(stream_of(info, script)));
    EXPECT_THAT(check.problems, IsEmpty());
    const json& choice = check.body["choices"][0];
    EXPECT_EQ(choice["finish_reason"], "length");
    EXPECT_EQ(choice["message"]["tool_calls"][0]["function"]["arguments"],
              "{\"city\":\"Zürich \\\"");
    const json body = body_of(info, script);
    EXPECT_EQ(body["choices"][0]["finish_reason"], "length");
    EXPECT_FALSE(body["choices"][0]["message"].contains("tool_calls"));
  }
}

TEST(ChatWriterTest, ABrokenCallKeepsItsNumber) {
  const ReplyScript script = play({broken_and_whole_call()});
  const StreamCheck check = check_chat_stream(events_of(stream_of(reply_info(kChat), script)));
  EXPECT_THAT(check.problems, IsEmpty());
  const json& message = check.body["choices"][0]["message"];
  EXPECT_EQ(message["tool_calls"][1]["function"], json({{"name", "clock"}, {"arguments", "{}"}}));
  EXPECT_EQ(check.body["choices"][0]["finish_reason"], "tool_calls");
}

// D16
TEST(ChatWriterTest, ThreeChoicesEndOnceEachAndUsageComesOnceAsTheSum) {
  const ScriptedChoice calls = {.output = "Look." + block_markup({weather_call(), clock_call()})};
  const ScriptedChoice longer = {.output = std::string(200, 'x'),
                                 .end = chat::FinishReason::kLength};
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    ReplyInfo info = reply_info(kChat);
    info.choice_count = 3;
    info.wants_stream_usage = seed % 2 == 0;
    const ReplyScript script = play({{.output = "short"}, calls, longer}, {.seed = seed});
    const StreamCheck check =
        check_chat_stream(events_of(stream_of(info, script)),
                          {.choice_count = 3, .wants_usage = info.wants_stream_usage});
    EXPECT_THAT(check.problems, IsEmpty());
    EXPECT_EQ(check.body, body_of(info, script));
    EXPECT_EQ(check.body["usage"]["completion_tokens"], script.result.usage.completion_tokens);
  }
}

TEST(ChatWriterTest, AChoiceWhoseFinishWasNotToldStillEndsOnce) {
  ReplyInfo info = reply_info(kChat);
  info.choice_count = 3;
  ReplyScript script = play({{.output = "a"}, {.output = "b"}, {.output = "c"}});
  for (service::ChoiceUpdate& update : script.updates) {
    std::erase_if(update.events, [](const chat::ReplyEvent& event) {
      return event.kind == chat::ReplyEvent::Kind::kFinish;
    });
  }
  const StreamCheck check =
      check_chat_stream(events_of(stream_of(info, script)), {.choice_count = 3});
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_EQ(check.body, body_of(info, script));
}

// D15
TEST(ChatWriterTest, BytesOfTheLogprobsAreThoseOfTheAnswer) {
  const ScriptedChoice choice = {
      .start = chat::ReplyStart::kReasoning,
      .output = "思考“x”.</think>‘yes’ \U0001F600" + block_markup({clock_call()})};
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    ReplyInfo info = reply_info(kThinking);
    info.wants_logprobs = true;
    info.top_logprobs = 2;
    const ReplyScript script =
        play({choice}, {.seed = seed, .longest_piece = 3, .has_logprobs = true});
    const StreamCheck check = check_chat_stream(events_of(stream_of(info, script)));
    EXPECT_THAT(check.problems, IsEmpty());
    EXPECT_EQ(check.body, body_of(info, script));
    const json& logprobs = check.body["choices"][0]["logprobs"];
    const auto joined = [](const json& entries) {
      std::string bytes;
      for (const json& entry : entries) {
        for (const json& byte : entry["bytes"]) bytes.push_back(static_cast<char>(byte.get<int>()));
      }
      return bytes;
    };
    EXPECT_EQ(joined(logprobs["reasoning_content"]), "思考“x”.");
    EXPECT_EQ(joined(logprobs["content"]), "‘yes’ \U0001F600");
    EXPECT_EQ(logprobs["content"][0]["top_logprobs"][1]["logprob"], -9999.0);
    EXPECT_EQ(logprobs["content"][0]["top_logprobs"][1]["bytes"], json({0xE2, 0x80}));
  }
}

TEST(ChatWriterTest, AFailureInMidStreamIsAnErrorAndTheEnd) {
  const ReplyInfo info = reply_info(kChat);
  const ReplyScript script = play({{.output = "some text"}});
  const auto writer = make_chat_writer(info);
  std::string stream = writer->begin();
  stream += writer->update(script.updates.front());
  stream += writer->fail({ErrorCode::kOverBudget, "no \xFF room"});
  const StreamCheck check = check_chat_stream(events_of(stream));
  EXPECT_THAT(check.problems, IsEmpty());
  EXPECT_EQ(check.error["message"], "no \uFFFD room");
  EXPECT_THAT(stream, Not(HasSubstr("[DONE]")));
}

TEST(ChatWriterTest, ABillAddsTheExtensionAndChangesNothingElse) {
  const ReplyScript script = play({{.output = "a"}});
  const ReplyInfo info = reply_info(kChat);
  json with = json::parse(reply_body(Dialect::kChat, info, script.result, some_bill()));
  EXPECT_EQ(with["usage"]["locket"]["usage"]["disk_tokens"], 8);
  EXPECT_EQ(with["usage"]["locket"]["usage"]["replayed_tokens"], 4);
  EXPECT_EQ(with["usage"]["locket"]["bill"]["total"], 0.875);
  with["usage"].erase("locket");
  EXPECT_EQ(with, body_of(info, script));
}

// One deviation at a time: what breaks some client is not the grammar.
TEST(ChatWriterTest, TheGrammarRefusesWhatBreaksClients) {
  const std::vector<StreamEvent> good = good_stream();
  ASSERT_THAT(check_chat_stream(good).problems, IsEmpty());
  const auto refuses = [](const std::string& what, const std::vector<StreamEvent>& events) {
    EXPECT_THAT(check_chat_stream(events).problems, Not(IsEmpty())) << what;
  };
  const auto later_call = [](json& data) {
    return is_call_chunk(data) && !data["choices"][0]["delta"]["tool_calls"][0].contains("id");
  };
  const auto on_later_call = [&](const std::function<void(json&)>& change) {
    return changed(good, [&](json& data) {
      if (!later_call(data)) return false;
      change(data["choices"][0]["delta"]["tool_calls"][0]);
      return true;
    });
  };
  refuses("role in every delta",
          changed_all(good, [](json& data) { data["choices"][0]["delta"]["role"] = "assistant"; }));
  refuses("another object", changed_all(good, [](json& data) { data["object"] = "chunk"; }));
  refuses("two ids", changed(good, [](json& data) { return (data["id"] = "x") != nullptr; }));
  refuses("no finish chunk", without(good, [](const StreamEvent& event) {
            return event.data.find("\"finish_reason\":\"") != std::string::npos;
          }));
  refuses("no end", without(good, [](const StreamEvent& event) { return event.data == "[DONE]"; }));
  refuses("no index", on_later_call([](json& call) { call.erase("index"); }));
  refuses("id:null later", on_later_call([](json& call) { call["id"] = nullptr; }));
  refuses("id again", on_later_call([](json& call) { call["id"] = "call_00"; }));
  refuses("name again", on_later_call([](json& call) { call["function"]["name"] = "f"; }));
  refuses("type again", on_later_call([](json& call) { call["type"] = "function"; }));
  refuses("null arguments", on_later_call([](json& call) { call["function"]["arguments"] = {}; }));
  refuses("all indexes 0", changed_all(good, [](json& data) {
            if (is_call_chunk(data)) data["choices"][0]["delta"]["tool_calls"][0]["index"] = 0;
          }));
  refuses("name in the second delta", changed(good, [](json& data) {
            return is_call_chunk(data) &&
                   data["choices"][0]["delta"]["tool_calls"][0]["function"].erase("name") > 0;
          }));
  refuses("finish stop beside calls", changed(good, [](json& data) {
            if (data["choices"][0]["finish_reason"].is_null()) return false;
            data["choices"][0]["finish_reason"] = "stop";
            return true;
          }));
  refuses("unknown finish", changed(good, [](json& data) {
            if (data["choices"][0]["finish_reason"].is_null()) return false;
            data["choices"][0]["finish_reason"] = "insufficient_system_resource";
            return true;
          }));
  refuses("usage on every chunk", changed_all(good, [](json& data) {
            data["usage"] = {{"prompt_tokens", 1}};
          }));
  refuses("reasoning under another name", changed_all(good, [](json& data) {
            json& delta = data["choices"][0]["delta"];
            if (delta.contains("reasoning_content")) delta["content"] = delta["reasoning_content"];
          }));
  std::vector<StreamEvent> twice = good;
  twice.insert(twice.end() - 1, *(twice.end() - 2));
  refuses("two finish chunks", twice);
}

TEST(ChatWriterTest, TheFramingRefusesWhatBreaksClients) {
  const std::string good = test_support::write_event_stream(good_stream());
  const auto problems = [](const std::string& stream) {
    return test_support::read_event_stream(stream).problems;
  };
  EXPECT_THAT(problems(": keep-alive\n" + good), IsEmpty());
  EXPECT_THAT(problems(": keep-alive\n\n" + good), Not(IsEmpty()));
  EXPECT_THAT(problems(":\n" + good), Not(IsEmpty()));
  EXPECT_THAT(problems("data: : keepalive\n\n" + good), Not(IsEmpty()));
  EXPECT_THAT(problems("id: 1\n" + good), Not(IsEmpty()));
  EXPECT_THAT(problems("data: {}\r\n\r\n"), Not(IsEmpty()));
  EXPECT_THAT(problems("data:{}\n\n"), Not(IsEmpty()));
  EXPECT_THAT(problems("\n" + good), Not(IsEmpty()));
  EXPECT_THAT(problems(good.substr(0, good.size() - 1)), Not(IsEmpty()));
  EXPECT_THAT(problems(good.substr(0, good.size() - 2)), Not(IsEmpty()));
}

TEST(ChatWriterTest, KeepsAliveBetweenAnyTwoPiecesWithoutABlankLine) {
  const ReplyScript script = play({{.output = "some text"}});
  const std::string stream = stream_of(reply_info(kChat), script);
  const test_support::EventStream read = test_support::read_event_stream(stream);
  EXPECT_EQ(read.comments, script.updates.size());
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_THAT(stream, HasSubstr("\n\n: keep-alive\ndata: "));
}

}  // namespace
}  // namespace locket::server
