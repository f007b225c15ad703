// Many clients at once: those that leave, those that wait, and that nobody's words depend on
// others.
#include <atomic>
#include <random>

#include "tests/server/api_fixture.h"

namespace locket::server {
namespace {

ApiSetup slots(std::size_t running) {
  ApiSetup setup = {.options = quiet_options()};
  setup.options.dispatcher.max_running = running;
  return setup;
}

// The one request that the page shows, or null.
Json only_request(const ApiServer& server) {
  const Json requests = server.state()["requests"];
  return requests.size() == 1 ? requests[0] : Json();
}

// Case D01: 40 streams over 4 slots, closed in every state.
TEST(ApiLoadTest, D01ClientsThatLeaveGiveTheirPlacesBack) {
  ApiServer server(slots(4));
  server.ready();
  std::mt19937 random(1);
  std::vector<HttpClient> clients;
  const auto& dialects = all_dialects();
  for (std::size_t i = 0; i < 40; ++i) {
    const DialectCase& dialect = dialects[i % dialects.size()];
    Json body = dialect.body(repeated("The cat sat. ", random() % 200), endless());
    body.erase("max_tokens");
    body[dialect.limit] = 50'000;
    clients.push_back(open_stream(server, dialect.path, body));
    if (i % 4 == 0) clients.back().read_head();
    if (i % 8 == 0) clients.back().read_piece();
  }
  std::shuffle(clients.begin(), clients.end(), random);
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (i % 2 == 0) {
      clients[i].reset();
    } else {
      clients[i].close();
    }
  }
  EXPECT_TRUE(server.becomes_idle());
  EXPECT_EQ(content_of(server.ask(kChatPath, chat_body("Hello!"))), "Hello! How are you today?");
}

// Case D03: a client gives up while its prompt is read; what was read is kept for the next try.
TEST(ApiLoadTest, D03GivingUpInThePromptEndsWithinAStepAndKeepsWhatWasRead) {
  ApiSetup setup = slots(4);
  setup.options.dispatcher.prompt_tokens_per_step = 32;
  ApiServer server(setup);
  server.ready();
  const Json body = chat_body(repeated("The cat sat on the roof. ", 300), {{"max_tokens", 4}});
  HttpClient client = open_stream(server, kChatPath, with(body, {{"stream", true}}));
  EXPECT_EQ(client.read_head().status, 200);
  std::size_t total = 0;
  ASSERT_TRUE(ApiServer::eventually([&] {
    const Json request = only_request(server);
    if (request.is_null()) return false;
    total = request["prompt_tokens"];
    return request["read_tokens"].get<std::size_t>() > 200;
  }));
  client.close();
  EXPECT_TRUE(server.becomes_idle());
  const std::size_t computed = server.load("prompt_tokens");
  EXPECT_LT(computed, total);
  const PromptUse retry = prompt_use(server.ask(kChatPath, body));
  EXPECT_GE(retry.hits, 128U);
  EXPECT_LE(retry.hits, computed);
}

// Case D05: headers at once, and a sign of life while one step reads the whole prompt.
TEST(ApiLoadTest, D05StreamsAreKeptAliveWhileThePromptIsReadAndInTheQueue) {
  ApiSetup setup = slots(1);
  setup.options.dispatcher.prompt_tokens_per_step = 1 << 20;
  setup.options.keep_alive_interval = std::chrono::milliseconds(20);
  ApiServer server(setup);
  server.ready();
  const Json body = chat_body(repeated("x ", 3'000), {{"max_tokens", 1}, {"stream", true}});
  HttpClient reading = open_stream(server, kChatPath, body);
  EXPECT_EQ(reading.read_head().status, 200);
  HttpClient queued = open_stream(server, kMessagesPath, messages_body("Hello!", endless(1)));
  EXPECT_EQ(queued.read_head().status, 200);
  EXPECT_THAT(reading.read_body_until(": keep-alive\n"), HasSubstr(": keep-alive\n"));
  const std::string pings = queued.read_body_until("event: ping\n");
  EXPECT_THAT(pings, ::testing::StartsWith("event: message_start\n"));
  EXPECT_THAT(pings, HasSubstr("event: ping\n"));
  EXPECT_EQ(server.load("steps"), 0U);  // not one step has ended meanwhile
  reading.close();
  queued.close();
  EXPECT_TRUE(server.becomes_idle());
}

TEST(ApiLoadTest, WaitingBodiesBeginWithBlankLinesIfThatIsWanted) {
  ApiSetup setup = slots(4);
  setup.options.pads_waiting_json = true;
  setup.options.keep_alive_interval = std::chrono::milliseconds(20);
  ApiServer server(setup);
  server.ready();
  const HttpReply reply =
      server.post(kChatPath, chat_body(repeated("x ", 1'500), {{"max_tokens", 1}}));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body.front(), '\n');
  EXPECT_EQ(Json::parse(reply.body)["usage"]["completion_tokens"], 1);
}

// Case D20: places are given back on every path of errors.
TEST(ApiLoadTest, D20ErrorsAtEveryStageLeaveNothingBehind) {
  ApiServer server(slots(2));
  server.ready();
  const Json picture = Json::array(
      {{{"type", "image_url"}, {"image_url", {{"url", "data:image/png;base64,iVBORw0KGgo="}}}}});
  for (int i = 0; i < 25; ++i) {
    EXPECT_EQ(server.post(kChatPath, chat_body("x", {{"temperature", 9}})).status, 400);
    Json body = chat_body("x");
    body["messages"][0]["content"] = picture;
    EXPECT_EQ(server.post(kChatPath, body).status, 400);
    EXPECT_EQ(server.post_text(kChatPath, "{\"messages\":[").status, 400);
    HttpClient leaver = open_stream(server, kChatPath, chat_body("Count.", endless()));
    if (i % 2 == 0) leaver.read_head();
    leaver.close();
  }
  EXPECT_TRUE(server.becomes_idle());
  HttpClient one = open_stream(server, kChatPath, chat_body("Count.", endless()));
  HttpClient two = open_stream(server, kChatPath, chat_body("Count.", endless()));
  EXPECT_TRUE(ApiServer::eventually([&] { return server.load("running") == 2; }));
  one.close();
  two.close();
}

// Case D31: words come as they are found, not in heaps; every piece says what it holds.
TEST(ApiLoadTest, D31EveryWordIsSentWhenItIsFound) {
  const Json body = chat_body("Count.", with(endless(200), {{"logprobs", true}}));
  HttpClient client = open_stream(mini_server(), kChatPath, with(body, {{"max_tokens", 100'000}}));
  EXPECT_EQ(client.read_head().status, 200);
  // The first words are there while the answer is far from its end.
  EXPECT_THAT(client.read_body_until("\"bytes\""), HasSubstr("\"bytes\""));
  EXPECT_TRUE(ApiServer::eventually([] { return mini_server().load("running") == 1; }));
  client.close();
  EXPECT_TRUE(mini_server().becomes_idle());
  std::size_t tokens = 0;
  for (const auto& event :
       test_support::read_event_stream(stream_reply(mini_server(), kChatPath, body).body).events) {
    if (event.data == "[DONE]") continue;
    const Json choice = Json::parse(event.data)["choices"][0];
    if (choice["logprobs"].is_null()) continue;
    EXPECT_LE(choice["logprobs"]["content"].size(), 5U);
    tokens += choice["logprobs"]["content"].size();
  }
  EXPECT_EQ(tokens, 200U);
}

// Case D34: a coding client's requests beside each other, and counting in between.
TEST(ApiLoadTest, D34CountingNeedsNoPlaceAndParallelRequestsBeginAtOnce) {
  ApiServer server(slots(1));
  server.ready();
  Json tools = Json::array();
  for (int i = 0; i < 25; ++i) {
    tools.push_back({{"name", fmt::format("tool_{}", i)},
                     {"description", repeated("It does something. ", 5)},
                     {"input_schema", {{"type", "object"}, {"properties", Json::object()}}}});
  }
  const Json body = messages_body("Fix the bug.", with(endless(), {{"tools", tools}}));
  std::vector<HttpClient> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(open_stream(server, kMessagesPath, body));
    // Its first bytes do not wait for those before it.
    EXPECT_EQ(clients.back().read_head().status, 200);
    EXPECT_THAT(clients.back().read_body_until("message_start"), HasSubstr("message_start"));
    Json count = body;
    count.erase("stream");
    EXPECT_EQ(server.post("/v1/messages/count_tokens", count).status, 200);
  }
  const Json load = server.state()["load"];
  EXPECT_LE(load["running"].get<int>(), 1);
  EXPECT_GE(load["queued"].get<int>(), 2);
  for (HttpClient& client : clients) client.close();
  EXPECT_TRUE(server.becomes_idle());
}

// Twenty clients of all dialects together read exactly what each of them reads alone.
TEST(ApiLoadTest, TwentyStreamsAtOnceSayWhatEachSaysAlone) {
  ApiSetup setup = {.options = quiet_options()};
  setup.engine.memory.keeps = engine::MemoryOptions::Keeps::kNothing;
  ApiServer server(setup);
  server.ready();
  constexpr std::size_t kClients = 20;
  constexpr const char* kQuestions[] = {"Hello!", "My cat is called Milo.", "I feel tired.",
                                        "My name is Clara.", "Tell me about the old house."};
  const auto request = [&](std::size_t i) {
    const DialectCase& dialect = all_dialects()[i % 4];
    Json more = {{"temperature", i % 3 == 0 ? 0.0 : 1.0}, {dialect.limit, 40}};
    more["seed"] = i;
    if (i % 5 == 0 && i % 4 != 3) more["ignore_eos"] = true;
    return std::pair(dialect.path, dialect.body(kQuestions[i % 5], more));
  };
  std::vector<std::string> alone(kClients);
  for (std::size_t i = 0; i < kClients; ++i) {
    const auto [path, body] = request(i);
    alone[i] = words_of(server.ask(path, body));
  }
  std::vector<std::string> together(kClients);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kClients; ++i) {
    threads.emplace_back([&, i] {
      const auto [path, body] = request(i);
      together[i] = words_of(streamed(server, path, body));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(together, alone);
}

}  // namespace
}  // namespace locket::server
