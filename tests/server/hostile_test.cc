// Clients that mean harm, or are only broken: whatever they do, others are answered meanwhile and
// afterwards, what they hold is bounded, and they hear a sound answer if any.
#include <dlfcn.h>
#include <vector>

#include "base/system_memory.h"
#include "tests/server/api_fixture.h"

namespace locket::server {
namespace {

const char* const kPostPaths[] = {kChatPath,
                                  kMessagesPath,
                                  kResponsesPath,
                                  kCompletionsPath,
                                  "/v1/messages/count_tokens",
                                  "/v1/chat/completions/render",
                                  "/tokenize",
                                  "/detokenize"};

void expect_good_service(const ApiServer& server) {
  EXPECT_EQ(content_of(server.ask(kChatPath, chat_body("Hello!"))), "Hello! How are you today?");
}

// A refusal that every JSON reader takes. dump() throws at invalid UTF-8.
void expect_sound_refusal(const HttpReply& reply, int status, const std::string& what) {
  EXPECT_EQ(reply.status, status) << what << ": " << reply.body;
  const Json json = Json::parse(reply.body, nullptr, false);
  ASSERT_TRUE(json.is_object() && json.contains("error")) << what << ": " << reply.body;
  EXPECT_NO_THROW(static_cast<void>(json.dump())) << what;
  EXPECT_LT(reply.body.size(), 10'000U) << what;
}

// Every piece is long, so that few of them fill what the system keeps for a reader.
Json long_pieces() {
  return chat_body("Count.", with(endless(), {{"logprobs", true}, {"top_logprobs", 20}}));
}

// Sanitizers keep what is freed, and much besides.
bool is_sanitized() {
  return ::dlsym(RTLD_DEFAULT, "__asan_init") != nullptr ||
         ::dlsym(RTLD_DEFAULT, "__tsan_init") != nullptr;
}

TEST(HostileTest, AReaderThatStopsIsPausedWhileOthersGoOn) {
  ApiServer server;
  server.ready();
  HttpClient stuck(server.port(), {.receive_buffer_bytes = 16 * 1024});
  ASSERT_TRUE(
      stuck.send(HttpClient::request_bytes({.method = "POST",
                                            .path = kChatPath,
                                            .body = long_pieces().dump(),
                                            .headers = {{"Content-Type", "application/json"}}})));
  EXPECT_EQ(stuck.read_head().status, 200);
  ASSERT_TRUE(ApiServer::eventually([&] { return server.load("paused") == 1; }));
  EXPECT_EQ(server.load("running"), 1U);
  const std::size_t tokens = server.load("generated_tokens");
  expect_good_service(server);
  // The stuck one has not gone on beside the other one: its words are not piled up.
  const std::size_t others = server.load("generated_tokens") - tokens;
  EXPECT_LT(others, 20U);
  EXPECT_EQ(server.load("paused"), 1U);
  // Who reads again is served again.
  ASSERT_TRUE(ApiServer::eventually([&] {
    stuck.read_piece(10);
    return server.load("generated_tokens") > tokens + others + 1;
  }));
  stuck.close();
  EXPECT_TRUE(server.becomes_idle());
}

TEST(HostileTest, ManyReadersThatStopHoldBoundedMemory) {
  if (is_sanitized()) GTEST_SKIP() << "memory of a program with a sanitizer says nothing";
  ApiServer server;
  server.ready();
  constexpr std::size_t kReaders = 6;
  constexpr std::size_t kMostBytesEach = std::size_t{3} << 20;
  expect_good_service(server);
  const std::uint64_t before = resident_memory_bytes();
  std::vector<HttpClient> stuck;
  for (std::size_t i = 0; i < kReaders; ++i) {
    stuck.push_back(open_stream(server, kChatPath, long_pieces()));
  }
  ASSERT_TRUE(ApiServer::eventually([&] { return server.load("paused") == kReaders; }));
  EXPECT_LT(resident_memory_bytes(), before + kReaders * kMostBytesEach);
  expect_good_service(server);
  for (HttpClient& client : stuck) client.reset();
  EXPECT_TRUE(server.becomes_idle());
}

TEST(HostileTest, RequestsThatNeverEndHoldBackNobodyAndAreEnded) {
  ApiSetup setup = {.options = quiet_options()};
  setup.options.http.head_timeout = std::chrono::milliseconds(1500);
  setup.options.http.body_timeout = std::chrono::milliseconds(1500);
  ApiServer server(setup);
  server.ready();
  std::vector<HttpClient> slow;
  for (std::size_t i = 0; i < 60; ++i) {
    slow.emplace_back(server.port());
    static const std::string kHead = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n";
    static const std::string kParts[] = {"P", kHead,
                                         kHead + "Content-Length: 1000\r\n\r\n{\"messages\":",
                                         kHead + "Transfer-Encoding: chunked\r\n\r\n5\r\n{\"me"};
    EXPECT_TRUE(slow.back().send(kParts[i % std::size(kParts)]));
  }
  expect_good_service(server);
  for (HttpClient& client : slow) {
    const HttpReply reply = client.read_reply("POST");
    EXPECT_EQ(reply.status, 408);
    EXPECT_TRUE(client.read_until_closed().is_closed);
  }
  expect_good_service(server);
}

TEST(HostileTest, ConnectionsThatAreOnlyHalfThereHoldBackNobody) {
  ApiServer& server = mini_server();
  std::vector<HttpClient> silent;
  for (std::size_t i = 0; i < 200; ++i) silent.emplace_back(server.port());
  std::vector<HttpClient> half;
  for (const DialectCase& dialect : all_dialects()) {
    Json body = dialect.body("Count.", endless());
    body.erase("max_tokens");
    body[dialect.limit] = 100'000;
    half.push_back(open_stream(server, dialect.path, body));
    EXPECT_EQ(half.back().read_head().status, 200);
    half.back().close_sending();
  }
  // Who has closed his side for writing will not ask for anything any more, and has left.
  EXPECT_TRUE(server.becomes_idle());
  expect_good_service(server);
}

TEST(HostileTest, HeadsThatAreTooLargeAreRefused) {
  ApiServer& server = mini_server();
  const std::string filler(80'000, 'x');
  const HttpReply replies[] = {server.get("/v1/models", {{"X-Filler", filler}}),
                               server.get("/" + filler), server.get("/v1/models?" + filler),
                               server.get("/v1/models", Headers(5'000, {"X-Filler", "0123456789"})),
                               server.get("/v1/models", {{filler, "x"}})};
  for (const HttpReply& reply : replies) expect_sound_refusal(reply, 431, "a head");
  expect_good_service(server);
}

TEST(HostileTest, DeepBodiesAreRefusedWhereverTheDepthStands) {
  ApiServer& server = mini_server();
  constexpr std::size_t kDepth = 20'000;
  const std::string lists = repeated("[", kDepth) + repeated("]", kDepth);
  const std::string objects = repeated("{\"a\":", kDepth) + "1" + repeated("}", kDepth);
  const std::string open = repeated("[{\"a\":", kDepth);
  for (const char* path : kPostPaths) {
    for (const std::string& deep : {lists, objects, open}) {
      for (const char* key : {"messages", "input", "tools", "metadata", "response_format", "x"}) {
        const std::string what = std::string(path) + " " + key;
        expect_sound_refusal(server.post_text(path, "{\"model\":\"mini\",\"" + std::string(key) +
                                                        "\":" + deep + "}"),
                             400, what);
      }
      expect_sound_refusal(server.post_text(path, deep), 400, path);
    }
  }
  expect_good_service(server);
}

TEST(HostileTest, SchemasThatPointAtThemselvesAreAnswered) {
  ApiServer& server = mini_server();
  const Json loop = {{"$ref", "#/$defs/a"}, {"$defs", {{"a", {{"$ref", "#/$defs/a"}}}}}};
  const Json tree = {{"type", "object"},
                     {"properties", {{"a", {{"$ref", "#"}}}, {"b", {{"$ref", "#"}}}}},
                     {"required", {"a", "b"}},
                     {"additionalProperties", false}};
  for (const Json& schema : {loop, tree}) {
    const Json format = {{"type", "json_schema"},
                         {"json_schema", {{"name", "s"}, {"schema", schema}, {"strict", true}}}};
    const HttpReply reply = server.post(
        kChatPath, chat_body("Say it.", {{"response_format", format}, {"max_tokens", 4}}));
    EXPECT_TRUE(reply.status == 200 || reply.status == 400) << reply.body;
    EXPECT_TRUE(Json::parse(reply.body, nullptr, false).is_object()) << reply.body;
  }
  expect_good_service(server);
}

TEST(HostileTest, InvalidUtf8IsRefusedInEveryPlaceWithASoundAnswer) {
  ApiServer& server = mini_server();
  const std::string broken[] = {"\xFF",         "\xC3",         "\xC0\xAF",
                                "\xED\xA0\x80", "\xE2\x82",     "\xF5\x80\x80\x80",
                                "\x80",         "a\xF0\x9F\x98"};
  for (const std::string& bytes : broken) {
    for (const char* path : kPostPaths) {
      const std::string bodies[] = {
          "{\"model\":\"mini\",\"messages\":[{\"role\":\"user\",\"content\":\"" + bytes + "\"}]}",
          "{\"model\":\"" + bytes + "\",\"input\":\"x\",\"prompt\":\"x\"}", "{\"" + bytes + "\":1}",
          bytes};
      for (const std::string& body : bodies) {
        expect_sound_refusal(server.post_text(path, body), 400, path);
      }
    }
    expect_sound_refusal(server.get("/v1/" + bytes), 400, "a path");
    expect_sound_refusal(server.get("/v1/models", {{"X-Name", bytes}}), 400, "a header");
  }
  expect_good_service(server);
}

}  // namespace
}  // namespace locket::server
