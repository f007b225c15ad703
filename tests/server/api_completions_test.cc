// Raw completions over HTTP.
#include "tests/server/api_fixture.h"

namespace locket::server {
namespace {

using ::testing::StartsWith;

TEST(ApiCompletionsTest, AnAnswerHasTheOldShape) {
  const Json body = mini_server().ask(kCompletionsPath, completion_body("My name is"));
  EXPECT_THAT(body["id"].get<std::string>(), StartsWith("cmpl-"));
  EXPECT_EQ(body["object"], "text_completion");
  EXPECT_EQ(body["model"], "deepseek-flash");
  const Json& choice = body["choices"][0];
  EXPECT_TRUE(choice["text"].is_string());
  EXPECT_EQ(choice["index"], 0);
  EXPECT_TRUE(choice["logprobs"].is_null());
  EXPECT_TRUE(choice["finish_reason"].is_string());
  EXPECT_TRUE(body["usage"]["prompt_cache_hit_tokens"].is_number());
}

TEST(ApiCompletionsTest, EveryPathOfTheDialectAnswers) {
  const Json body = completion_body("My name is", {{"max_tokens", 3}});
  const std::string text = words_of(mini_server().ask(kCompletionsPath, body));
  for (const char* path : {"/completions", "/beta/completions", "/beta/v1/completions"}) {
    EXPECT_EQ(words_of(mini_server().ask(path, body)), text) << path;
  }
}

TEST(ApiCompletionsTest, SpecialSpellingsStayPlainText) {
  const std::string text = "<｜end▁of▁sentence｜>x";
  const std::size_t plain = mini_server().ask("/tokenize", {{"prompt", text}})["count"];
  const Json usage =
      mini_server().ask(kCompletionsPath, completion_body(text, {{"max_tokens", 1}}))["usage"];
  EXPECT_EQ(usage["prompt_tokens"], plain + 1);  // and the beginning
  EXPECT_GT(plain, 3U);
}

TEST(ApiCompletionsTest, AStreamAddsUpToTheBody) {
  const Json body = completion_body("My name is", {{"logprobs", 2}, {"n", 2}});
  const Json whole = mini_server().ask(kCompletionsPath, body);
  const HttpReply reply = stream_reply(mini_server(), kCompletionsPath, body);
  EXPECT_THAT(reply.body, ::testing::EndsWith("data: [DONE]\n\n"));
  const StreamCheck check = checked(kCompletionsPath, reply.body, {.choice_count = 2});
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(Json::parse(check.body["choices"][i]["text"].dump()), whole["choices"][i]["text"]);
  }
}

TEST(ApiCompletionsTest, EchoPutsThePromptFirst) {
  const Json body = completion_body("My name is", {{"echo", true}, {"max_tokens", 3}});
  EXPECT_THAT(words_of(mini_server().ask(kCompletionsPath, body)), StartsWith("My name is"));
  EXPECT_THAT(words_of(streamed(mini_server(), kCompletionsPath, body)), StartsWith("My name is"));
}

TEST(ApiCompletionsTest, LogprobsAreLists) {
  const Json body = completion_body("My name is", {{"logprobs", 2}, {"max_tokens", 4}});
  const Json logprobs = mini_server().ask(kCompletionsPath, body)["choices"][0]["logprobs"];
  for (const char* name : {"tokens", "token_logprobs", "top_logprobs", "text_offset"}) {
    EXPECT_EQ(logprobs[name].size(), 4U) << name;
  }
  expect_refused(mini_server().post(kCompletionsPath, completion_body("x", {{"logprobs", 21}})),
                 400, "logprobs is 21");
}

TEST(ApiCompletionsTest, ATokenizerWithoutTheTokensCannotFillIn) {
  const Json body = completion_body("a", {{"suffix", "b"}});
  expect_refused(mini_server().post("/beta/completions", body), 400, "it can only continue a text");
}

TEST(ApiCompletionsTest, APromptMayBeTokens) {
  const Json ids = mini_server().ask("/tokenize", {{"prompt", "My name is"}})["tokens"];
  Json body = completion_body("", {{"prompt", ids}, {"max_tokens", 3}});
  EXPECT_EQ(mini_server().ask(kCompletionsPath, body)["usage"]["prompt_tokens"], ids.size());
  body["prompt"] = Json::array({1'000'000});
  expect_refused(mini_server().post(kCompletionsPath, body), 400, "prompt[0] is 1000000");
}

TEST(ApiCompletionsTest, StopStringsEndTheText) {
  const std::string whole =
      words_of(mini_server().ask(kCompletionsPath, completion_body("My name is")));
  const std::string stop = whole.substr(3, 3);
  const Json cut =
      mini_server().ask(kCompletionsPath, completion_body("My name is", {{"stop", stop}}));
  EXPECT_EQ(words_of(cut), whole.substr(0, whole.find(stop)));
  EXPECT_EQ(cut["choices"][0]["finish_reason"], "stop");
}

}  // namespace
}  // namespace locket::server
