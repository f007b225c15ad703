// Completions, the old shape.
#include "server/completion_writer.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/writer_cases.h"
#include "tests/support/chat_stream.h"

namespace locket::server {
namespace {

using test_support::check_completion_stream;
using ::testing::IsEmpty;
using ::testing::Not;

ReplyInfo plain_info() { return reply_info(chat::ThinkingMode::kChat); }

StreamCheck check(const ReplyInfo& info, const ReplyScript& script) {
  const std::string stream = test_support::stream_of(Dialect::kCompletions, info, script);
  return check_completion_stream(events_of(stream), {.choice_count = info.choice_count,
                                                     .wants_usage = info.wants_stream_usage,
                                                     .usage_chunk = info.usage_chunk});
}

json body_of(const ReplyInfo& info, const ReplyScript& script) {
  return json::parse(reply_body(Dialect::kCompletions, info, script.result, {}));
}

TEST(CompletionWriterTest, AStreamAddsUpToTheBody) {
  const std::vector<ScriptedChoice> answers = {
      {.output = "some text \U0001F600"},
      {.output = ""},
      {.output = "cut", .end = chat::FinishReason::kLength},
      {.output = "One END two", .stop = {"END"}}};
  for (const ScriptedChoice& answer : answers) {
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
      ReplyInfo info = plain_info();
      info.wants_stream_usage = seed % 2 == 0;
      info.echo = seed % 3 == 0 ? "The prompt: " : "";
      const ReplyScript script = play({answer}, {.seed = seed});
      const StreamCheck read = check(info, script);
      EXPECT_THAT(read.problems, IsEmpty());
      EXPECT_EQ(read.body, body_of(info, script));
    }
  }
}

TEST(CompletionWriterTest, HasTheOldShape) {
  const ReplyScript script = play({{.output = "text", .end = chat::FinishReason::kLength}});
  json body = body_of(plain_info(), script);
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["choices"].dump(),
            R"([{"finish_reason":"length","index":0,"logprobs":null,"text":"text"}])");
  EXPECT_EQ(body["usage"]["prompt_cache_hit_tokens"], 24);
}

TEST(CompletionWriterTest, ThreeChoicesEndOnceEach) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    ReplyInfo info = plain_info();
    info.choice_count = 3;
    info.echo = "p";
    const ReplyScript script =
        play({{.output = "a"}, {.output = "some more"}, {.output = ""}}, {.seed = seed});
    const StreamCheck read = check(info, script);
    EXPECT_THAT(read.problems, IsEmpty());
    EXPECT_EQ(read.body, body_of(info, script));
  }
}

TEST(CompletionWriterTest, LogprobsAreListsWithOffsetsInCharacters) {
  service::SampledToken first;
  first.chosen = {.token = 1, .logprob = -0.5, .bytes = "é"};
  first.top = {first.chosen, {.token = 2, .logprob = -HUGE_VAL, .bytes = "x"}};
  service::SampledToken half;
  half.chosen = {.token = 3, .logprob = -1, .bytes = "\xE2\x80"};
  service::SampledToken rest;
  rest.chosen = {.token = 4, .logprob = -2, .bytes = "\x9Cz"};
  service::SampledToken last;
  last.chosen = {.token = 5, .logprob = -3, .bytes = "!"};
  ReplyScript script;
  script.result.choices.resize(1);
  script.result.choices[0].reply.content = "é“z!";
  script.result.choices[0].tokens = {first, half, rest, last};
  ReplyInfo info = plain_info();
  info.wants_logprobs = true;
  info.top_logprobs = 2;
  info.echo = "äö";
  const json logprobs = body_of(info, script)["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], json({"é", "bytes:\\xe2\\x80", "bytes:\\x9c\\x7a", "!"}));
  EXPECT_EQ(logprobs["token_logprobs"], json({-0.5, -1.0, -2.0, -3.0}));
  EXPECT_EQ(logprobs["text_offset"], json({2, 3, 4, 5}));
  EXPECT_EQ(logprobs["top_logprobs"][0], json({{"é", -0.5}, {"x", -9999.0}}));
  info.top_logprobs = 0;
  EXPECT_EQ(body_of(info, script)["choices"][0]["logprobs"]["top_logprobs"], nullptr);
}

TEST(CompletionWriterTest, LogprobsOfAStreamAreThoseOfTheBody) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    ReplyInfo info = plain_info();
    info.wants_logprobs = true;
    info.top_logprobs = 2;
    info.echo = "ü";
    const ReplyScript script = play({{.output = "some “text” \U0001F600!"}},
                                    {.seed = seed, .longest_piece = 3, .has_logprobs = true});
    const StreamCheck read = check(info, script);
    EXPECT_THAT(read.problems, IsEmpty());
    EXPECT_EQ(read.body, body_of(info, script));
  }
}

TEST(CompletionWriterTest, AFailureInMidStreamIsAnErrorAndTheEnd) {
  const auto writer = make_completion_writer(plain_info());
  const std::string stream = writer->begin() + writer->fail({ErrorCode::kInternal, "broken"});
  const StreamCheck read = check_completion_stream(events_of(stream));
  EXPECT_THAT(read.problems, IsEmpty());
  EXPECT_EQ(read.error["message"], "broken");
}

TEST(CompletionWriterTest, TheGrammarRefusesWhatBreaksClients) {
  const ReplyScript script = play({{.output = "some text"}});
  const std::vector<StreamEvent> good =
      events_of(test_support::stream_of(Dialect::kCompletions, plain_info(), script));
  const auto refuses = [](const std::vector<StreamEvent>& events) {
    EXPECT_THAT(check_completion_stream(events).problems, Not(IsEmpty()));
  };
  refuses(changed(good, [](json& data) { return (data["object"] = "chunk") != nullptr; }));
  refuses(changed(good, [](json& data) { return data["choices"][0].erase("text") > 0; }));
  refuses(without(good, [](const StreamEvent& event) { return event.data == "[DONE]"; }));
  std::vector<StreamEvent> twice = good;
  twice.insert(twice.end() - 1, *(twice.end() - 2));
  refuses(twice);
}

}  // namespace
}  // namespace locket::server
