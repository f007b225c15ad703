// How the words are chosen, over HTTP: what requests may say about it, and the bounds of it.
#include "tests/server/api_fixture.h"

namespace locket::server {
namespace {

constexpr const char* kQuestion = "Tell me about the old house near the river.";

std::string said(const ApiServer& server, const Json& more) {
  Json body = chat_body(kQuestion, {{"max_tokens", 30}});
  body.erase("temperature");
  return content_of(server.ask(kChatPath, with(body, more)));
}
std::string said(const Json& more) { return said(mini_server(), more); }

TEST(ApiSamplingTest, ASeedRepeatsAndTemperatureZeroIsGreedy) {
  const std::string once = said({{"seed", 11}, {"temperature", 1.5}});
  EXPECT_EQ(said({{"seed", 11}, {"temperature", 1.5}}), once);
  bool differs = false;
  for (int seed = 12; seed < 20; ++seed) {
    differs = differs || said({{"seed", seed}, {"temperature", 1.5}}) != once;
  }
  EXPECT_TRUE(differs);
  const std::string greedy = said({{"temperature", 0}});
  EXPECT_EQ(said({{"temperature", 0}, {"seed", 5}}), greedy);
  EXPECT_EQ(said({{"temperature", 2}, {"top_k", 1}}), greedy);
  EXPECT_EQ(said({{"temperature", 2}, {"top_p", 0.0001}}), greedy);
  EXPECT_EQ(said({{"temperature", 2}, {"min_p", 1}}), greedy);
}

// Without a word about it the temperature is 1: as if it had been said.
TEST(ApiSamplingTest, TheDefaultIsTemperatureOne) {
  for (int seed = 0; seed < 4; ++seed) {
    EXPECT_EQ(said({{"seed", seed}}), said({{"seed", seed}, {"temperature", 1}, {"top_p", 1}}));
  }
}

TEST(ApiSamplingTest, EveryFieldHasItsBounds) {
  const std::vector<Json> wrong = {{{"temperature", 2.1}},
                                   {{"temperature", -0.1}},
                                   {{"top_p", 1.1}},
                                   {{"min_p", -1}},
                                   {{"frequency_penalty", 3}},
                                   {{"presence_penalty", -3}},
                                   {{"repetition_penalty", 0}},
                                   {{"top_k", -2}},
                                   {{"n", 0}},
                                   {{"n", 129}},
                                   {{"n", 1'000'000'000'000}},
                                   {{"seed", 1.5}},
                                   {{"max_tokens", 0}},
                                   {{"max_tokens", -1}},
                                   {{"min_tokens", -1}},
                                   {{"logit_bias", {{"5", 101}}}},
                                   {{"logit_bias", {{"x", 1}}}},
                                   {{"stop_token_ids", {-1}}},
                                   {{"max_tokens", 1e30}}};
  for (const Json& more : wrong) {
    const HttpReply reply = mini_server().post(kChatPath, chat_body("x", more));
    EXPECT_EQ(reply.status, 400) << more << reply.body;
    EXPECT_THAT(error_text(reply), HasSubstr(more.begin().key()));
  }
  const Json order = {{"max_tokens", 3}, {"min_tokens", 4}};
  expect_refused(mini_server().post(kChatPath, chat_body("x", order)), 400, "min_tokens is 4");
  std::vector<int> stop(129, 1);
  expect_refused(mini_server().post(kChatPath, chat_body("x", {{"stop_token_ids", stop}})), 400,
                 "stop_token_ids has 129");
}

TEST(ApiSamplingTest, FieldsOfOthersAreTaken) {
  const Json more = {{"frequency_penalty", 0.0},
                     {"presence_penalty", 0.0},
                     {"repetition_penalty", 1.0},
                     {"skip_special_tokens", true},
                     {"service_tier", "auto"},
                     {"parallel_tool_calls", true},
                     {"top_k", -1},
                     {"user", "x y"}};
  EXPECT_EQ(content_of(mini_server().ask(kChatPath, chat_body("Hello!", more))),
            "Hello! How are you today?");
}

TEST(ApiSamplingTest, ABiasChoosesTheToken) {
  const Json ids = mini_server().ask("/tokenize", {{"prompt", "!"}})["tokens"];
  const Json more = {{"logit_bias", {{std::to_string(ids[0].get<int>()), 100}}}, {"max_tokens", 4}};
  EXPECT_EQ(content_of(mini_server().ask(kChatPath, chat_body("Hello!", more))), "!!!!");
}

TEST(ApiSamplingTest, EndsCanBeMoved) {
  const Json longer = mini_server().ask(kChatPath, chat_body("Hello!", {{"min_tokens", 20}}));
  EXPECT_GE(longer["usage"]["completion_tokens"], 20);
  const Json further = mini_server().ask(kChatPath, chat_body("Hello!", {{"ignore_eos", true}}));
  EXPECT_EQ(further["usage"]["completion_tokens"], 40);
  const Json ids = mini_server().ask("/tokenize", {{"prompt", "!"}})["tokens"];
  const Json stopped = mini_server().ask(kChatPath, chat_body("Hello!", {{"stop_token_ids", ids}}));
  EXPECT_EQ(content_of(stopped), "Hello");
  EXPECT_EQ(stopped["choices"][0]["finish_reason"], "stop");
  const Json kept = {{"stop", "are"}, {"include_stop_str_in_output", true}};
  EXPECT_EQ(content_of(mini_server().ask(kChatPath, chat_body("Hello!", kept))), "Hello! How are");
}

// As the hosted service: thinking takes no temperature, and chat no top_p.
TEST(ApiSamplingTest, TheCompatibleModeIgnoresWhatTheHostedServiceIgnores) {
  ApiSetup setup = {.options = quiet_options()};
  setup.options.sampling = SamplingMode::kCompat;
  ApiServer server(setup);
  server.ready();
  const auto thought = [](const ApiServer& asked, const Json& more) {
    Json body = chat_body(kQuestion, {{"thinking", {{"type", "enabled"}}}, {"max_tokens", 20}});
    body.erase("temperature");
    return asked.ask(kChatPath, with(body, more))["choices"][0]["message"].dump();
  };
  bool differs = false;
  for (int seed = 0; seed < 6; ++seed) {
    const Json plain = {{"seed", seed}};
    const Json cold = {{"seed", seed}, {"temperature", 0}, {"frequency_penalty", 2}};
    EXPECT_EQ(thought(server, cold), thought(server, plain));
    differs = differs || thought(mini_server(), cold) != thought(mini_server(), plain);
    EXPECT_EQ(said(server, {{"seed", seed}, {"top_p", 0.0001}}), said(server, {{"seed", seed}}));
  }
  EXPECT_TRUE(differs);  // the local mode obeys
}

}  // namespace
}  // namespace locket::server
