// Whose memory a request finds: that of the same key, user and salt, and nobody else's; and nothing
// that a caller can see tells of the memory of others.
#include "tests/server/api_fixture.h"

namespace locket::server {
namespace {

const std::string& long_text() {
  static const std::string text = repeated("The farmer painted the old house near the river. ", 20);
  return text;
}

ApiSetup with_keys() {
  ApiSetup setup = {.options = quiet_options()};
  setup.options.api_keys = {"ann:secret-of-ann,ann:other-key-of-ann,bob:secret-of-bob"};
  return setup;
}
Headers key(const std::string& secret) { return {{"Authorization", "Bearer " + secret}}; }

// What one more request does to the counts of the model.
struct Work {
  std::size_t steps = 0;
  std::size_t prompt_tokens = 0;
  std::size_t hit_tokens = 0;
  bool operator==(const Work&) const = default;
};
Work load_of(const ApiServer& server, const Headers& headers) {
  const Json load = server.state(headers)["load"];
  return {load["steps"], load["prompt_tokens"], load["hit_tokens"]};
}
Work work_of(const ApiServer& server, const std::string& path, const Json& body,
             const Headers& headers) {
  const Work before = load_of(server, headers);
  server.ask(path, body, headers);
  const Work after = load_of(server, headers);
  return {after.steps - before.steps, after.prompt_tokens - before.prompt_tokens,
          after.hit_tokens - before.hit_tokens};
}

TEST(ApiTenantsTest, TheSameCallerFindsItsMemoryAgain) {
  ApiServer server(with_keys());
  server.ready();
  const Json body = chat_body(long_text());
  EXPECT_EQ(prompt_use(server.ask(kChatPath, body, key("secret-of-ann"))).hits, 0U);
  const PromptUse again = prompt_use(server.ask(kChatPath, body, key("secret-of-ann")));
  EXPECT_GE(again.hits + 1, again.tokens);
  // A key may be changed without losing the memory: the name is the caller.
  const PromptUse other = prompt_use(server.ask(kChatPath, body, key("other-key-of-ann")));
  EXPECT_GE(other.hits + 1, other.tokens);
}

TEST(ApiTenantsTest, KeysUsersAndSaltsPartTheMemoryInEveryDialect) {
  for (const DialectCase& dialect : all_dialects()) {
    SCOPED_TRACE(dialect.name);
    ApiServer server(with_keys());
    server.ready();
    const bool is_responses = std::string_view(dialect.name) == "responses";
    const bool is_messages = std::string_view(dialect.name) == "messages";
    const auto user = [&](const char* name) {
      if (is_messages) return Json{{"metadata", {{"user_id", name}}}};
      return Json{{is_responses ? "user" : "user_id", name}};
    };
    const std::string text = std::string(dialect.name) + " " + long_text();
    const auto hits = [&](const Json& more, const char* secret) {
      return prompt_use(server.ask(dialect.path, dialect.body(text, more), key(secret))).hits;
    };
    EXPECT_EQ(hits(user("u1"), "secret-of-ann"), 0U);
    EXPECT_GT(hits(user("u1"), "secret-of-ann"), 100U);
    EXPECT_EQ(hits(user("u2"), "secret-of-ann"), 0U);
    EXPECT_EQ(hits(Json::object(), "secret-of-ann"), 0U);
    EXPECT_EQ(hits(user("u1"), "secret-of-bob"), 0U);
    const Json salted = with(user("u1"), {{"cache_salt", "s"}});
    EXPECT_EQ(hits(salted, "secret-of-ann"), 0U);
    EXPECT_GT(hits(salted, "secret-of-ann"), 100U);
    // A salt is not a user of the same name.
    EXPECT_EQ(hits({{"cache_salt", "u1"}}, "secret-of-ann"), 0U);
  }
}

// The work of a cold request, of a request that only a stranger has asked before, and what both are
// told: all the same.
TEST(ApiTenantsTest, NothingTellsWhatOthersHaveAsked) {
  const auto cold = [](const Json& body) {
    ApiServer server(with_keys());
    server.ready();
    return work_of(server, kChatPath, body, key("secret-of-bob"));
  };
  const Json body = chat_body(long_text(), {{"max_tokens", 8}, {"ignore_eos", true}});
  const Work lone = cold(body);
  ApiServer server(with_keys());
  server.ready();
  EXPECT_EQ(work_of(server, kChatPath, body, key("secret-of-ann")), lone);
  EXPECT_EQ(work_of(server, kChatPath, body, key("secret-of-bob")), lone);
  EXPECT_EQ(lone.hit_tokens, 0U);
  const Work warm = work_of(server, kChatPath, body, key("secret-of-bob"));
  EXPECT_LT(warm.prompt_tokens, lone.prompt_tokens);  // so that the counts mean something
  EXPECT_GT(warm.hit_tokens, 0U);
}

TEST(ApiTenantsTest, AStrangersUsageIsThatOfAColdRequest) {
  ApiServer server(with_keys());
  server.ready();
  const Json body = chat_body(long_text());
  const PromptUse first = prompt_use(server.ask(kChatPath, body, key("secret-of-ann")));
  const PromptUse foreign = prompt_use(server.ask(kChatPath, body, key("secret-of-bob")));
  EXPECT_EQ(foreign.hits, 0U);
  EXPECT_EQ(foreign.replayed, first.replayed);
  EXPECT_EQ(foreign.tokens, first.tokens);
}

TEST(ApiTenantsTest, SaltsAndUsersAreCheckedAtTheDoor) {
  for (const std::string& salt : {std::string(), std::string("a b"), std::string(129, 'x'),
                                  std::string("ümlaut"), std::string("a\nb")}) {
    for (const DialectCase& dialect : all_dialects()) {
      expect_refused(mini_server().post(dialect.path, dialect.body("x", {{"cache_salt", salt}})),
                     400, "cache_salt");
    }
  }
  for (const std::string& user : {std::string("a b"), std::string(513, 'x'), std::string("é")}) {
    expect_refused(mini_server().post(kChatPath, chat_body("x", {{"user_id", user}})), 400,
                   "user_id");
  }
}

// What was said to one key cannot be referred to with another.
TEST(ApiTenantsTest, ItemsAndCallsOfOthersAreNotFound) {
  ApiServer server(with_keys());
  server.ready();
  const Json said = server.ask(kResponsesPath, responses_body("Hello!"), key("secret-of-ann"));
  const Json reference = {{"type", "item_reference"}, {"id", said["output"][0]["id"]}};
  Json body = responses_body("");
  body["input"] = Json::array({{{"role", "user"}, {"content", "Hello!"}},
                               reference,
                               {{"role", "user"}, {"content", "And?"}}});
  EXPECT_EQ(server.post(kResponsesPath, body, key("secret-of-ann")).status, 200);
  expect_refused(server.post(kResponsesPath, body, key("secret-of-bob")), 400,
                 "no such item is kept");
}

}  // namespace
}  // namespace locket::server
