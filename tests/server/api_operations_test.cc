// What operators and probes see: health, models, metrics, tokens, keys, pages of others, loading,
// draining, logs.
#include <algorithm>
#include <future>
#include <sstream>

#include "base/log.h"
#include "tests/server/api_fixture.h"

namespace locket::server {
namespace {

using ::testing::Contains;

TEST(ApiOperationsTest, HealthIsOpenAndSaysReady) {
  for (const char* path : {"/health", "/health/live", "/health/ready"}) {
    const HttpReply reply = mini_server().get(path);
    EXPECT_EQ(reply.status, 200) << path;
    EXPECT_EQ(Json::parse(reply.body)["status"], "ready");
  }
  for (const char* path : {"/api/hello", "/v1/api/hello", "/anthropic/api/hello"}) {
    EXPECT_EQ(mini_server().call({.method = "HEAD", .path = path}).status, 200) << path;
    EXPECT_EQ(mini_server().get(path).status, 200) << path;
  }
  EXPECT_THAT(mini_server().get("/version").body, HasSubstr("\"version\":\""));
}

TEST(ApiOperationsTest, ModelsHaveOneShapeForBothWorlds) {
  for (const char* path : {"/models", "/v1/models", "/anthropic/v1/models", "/beta/models"}) {
    const HttpReply reply = mini_server().get(path);
    EXPECT_EQ(reply.status, 200) << path;  // and no redirect
    const Json list = Json::parse(reply.body);
    EXPECT_EQ(list["object"], "list");
    EXPECT_EQ(list["has_more"], false);
    EXPECT_EQ(list["first_id"], "deepseek-flash");
    EXPECT_EQ(list["last_id"], list["data"].back()["id"]);
    const Json& model = list["data"][0];
    EXPECT_EQ(model["id"], "deepseek-flash");
    EXPECT_EQ(model["object"], "model");
    EXPECT_EQ(model["type"], "model");
    EXPECT_TRUE(model["created"].is_number_integer());
    EXPECT_THAT(model["created_at"].get<std::string>(), ::testing::EndsWith("Z"));
    EXPECT_TRUE(model["owned_by"].is_string());
    EXPECT_TRUE(model["display_name"].is_string());
    EXPECT_EQ(model["max_model_len"], 1'048'576);
  }
  EXPECT_EQ(Json::parse(mini_server().get("/v1/models/deepseek-flash").body)["id"],
            "deepseek-flash");
  expect_refused(mini_server().get("/v1/models/gpt-9"), 404, "gpt-9");
}

TEST(ApiOperationsTest, TextBecomesTokensAndBack) {
  const Json tokens = mini_server().ask("/tokenize", {{"prompt", "My name is Clara."}});
  EXPECT_EQ(tokens["count"], tokens["tokens"].size());
  EXPECT_EQ(tokens["max_model_len"], 1'048'576);
  EXPECT_EQ(mini_server().ask("/detokenize", {{"tokens", tokens["tokens"]}})["prompt"],
            "My name is Clara.");
  const Json chat = chat_body("Hello!");
  const Json prompt = mini_server().ask("/v1/chat/completions/render", chat);
  EXPECT_EQ(mini_server().ask("/tokenize", chat)["tokens"], prompt["tokens"]);
  EXPECT_EQ(prompt["count"], prompt["tokens"].size());
  EXPECT_EQ(mini_server().ask(kChatPath, chat)["usage"]["prompt_tokens"], prompt["count"]);
  expect_refused(mini_server().post("/detokenize", {{"tokens", {"a"}}}), 400, "tokens[0]");
  expect_refused(mini_server().post("/tokenize", {{"text", "a"}}), 400, "prompt");
}

// A number that stands alone on its line.
double metric(const ApiServer& server, const std::string& name) {
  std::istringstream lines(server.get("/metrics").body);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + " ")) return std::stod(line.substr(name.size() + 1));
  }
  ADD_FAILURE() << "no metric " << name;
  return -1;
}

TEST(ApiOperationsTest, MetricsCountWhatWasAsked) {
  ApiServer server;
  server.ready();
  server.ask(kChatPath, chat_body(repeated("The cat sat. ", 30)));
  const Json second = server.ask(kChatPath, chat_body(repeated("The cat sat. ", 30)));
  // Who has the answer finds it counted.
  EXPECT_EQ(metric(server, "vllm:e2e_request_latency_seconds_count{model_name=\"deepseek-flash\"}"),
            2);
  ASSERT_TRUE(server.becomes_idle());
  const HttpReply reply = server.get("/metrics");
  EXPECT_THAT(reply.header("content-type"), HasSubstr("text/plain; version=0.0.4"));
  EXPECT_THAT(reply.body,
              HasSubstr("locket_requests_total{route=\"/v1/chat/completions\",status=\"200\"} 2"));
  EXPECT_EQ(metric(server, "locket_cache_hit_tokens_total{tier=\"ram\"}"),
            second["usage"]["prompt_cache_hit_tokens"].get<double>());
  EXPECT_EQ(metric(server, "vllm:prefix_cache_hits_total{model_name=\"deepseek-flash\"}"),
            second["usage"]["prompt_cache_hit_tokens"].get<double>());
  EXPECT_EQ(metric(server, "locket_requests_running"), 0);
  EXPECT_GT(metric(server, "locket_cache_ram_bytes"), 0);
  for (const char* name :
       {"locket_cache_disk_hits_total", "locket_cache_disk_misses_total", "locket_cache_disk_bytes",
        "locket_cache_disk_write_seconds_total", "locket_cache_disk_evictions_total",
        "locket_cache_disk_corrupt_total"}) {
    EXPECT_GE(metric(server, name), 0) << name;
  }
  EXPECT_THAT(reply.body, ::testing::Not(HasSubstr("cat")));
}

// The end token is biased, so that every answer ends at once; what it was allowed is counted.
TEST(ApiOperationsTest, WithoutALimitTheAnswerHasTheHostedServicesLimits) {
  ApiServer server;
  server.ready();
  const std::string name =
      "vllm:request_max_num_generation_tokens_sum{model_name=\"deepseek-flash\"}";
  const auto limit = [&](const Json& more) {
    const double before = metric(server, name);
    Json body = chat_body("Hello!", with(more, {{"logit_bias", {{"1", 100}}}}));
    body.erase("max_tokens");
    server.ask(kChatPath, body);
    return metric(server, name) - before;
  };
  EXPECT_EQ(limit(Json::object()), 8'192);
  const Json thinking = {{"thinking", {{"type", "enabled"}}}};
  EXPECT_EQ(limit(thinking), 65'536);
  EXPECT_EQ(limit(with(thinking, {{"reasoning_effort", "max"}})), 131'072);
}

ApiSetup with_keys() {
  ApiSetup setup = {.options = quiet_options()};
  setup.options.api_keys = {"ann:secret-of-ann,bob:secret-of-bob"};
  return setup;
}

TEST(ApiOperationsTest, KeysGuardEverythingButHealth) {
  ApiServer server(with_keys());
  server.ready();
  for (const char* path : {"/metrics", "/v1/models", "/version", "/ui/state", "/tokenize",
                           "/v1/files", "/nothing", kChatPath, kMessagesPath}) {
    const HttpReply reply = server.get(path);
    EXPECT_EQ(reply.status, 401) << path;
    EXPECT_EQ(reply.header("www-authenticate"), "Bearer");
    error_text(reply);
  }
  for (const char* path : {"/health", "/health/live", "/health/ready", "/api/hello"}) {
    EXPECT_EQ(server.get(path).status, 200) << path;
  }
  EXPECT_EQ(Json::parse(server.post(kChatPath, chat_body("x")).body)["error"]["code"],
            "invalid_api_key");
  EXPECT_EQ(Json::parse(server.post(kMessagesPath, chat_body("x")).body)["error"]["type"],
            "authentication_error");
  const Headers bearer = {{"Authorization", "Bearer secret-of-ann"}};
  const Headers key = {{"x-api-key", "secret-of-bob"}};
  EXPECT_EQ(server.post(kChatPath, chat_body("Hello!"), bearer).status, 200);
  EXPECT_EQ(server.post(kMessagesPath, messages_body("Hello!"), key).status, 200);
  const Headers both = {{"Authorization", "Bearer wrong"}, {"x-api-key", "secret-of-bob"}};
  EXPECT_EQ(server.post(kMessagesPath, messages_body("Hello!"), both).status, 401);
}

TEST(ApiOperationsTest, ACallerHasItsOwnLimitAndIsToldWhenToComeAgain) {
  ApiSetup setup = with_keys();
  setup.options.max_requests_per_key = 1;
  ApiServer server(setup);
  server.ready();
  const Headers ann = {{"Authorization", "Bearer secret-of-ann"}};
  const Headers bob = {{"Authorization", "Bearer secret-of-bob"}};
  HttpClient busy = open_stream(server, kChatPath, chat_body("Count.", endless()), ann);
  EXPECT_EQ(busy.read_head().status, 200);
  const HttpReply reply = server.post(kChatPath, chat_body("Hello!"), ann);
  EXPECT_EQ(reply.status, 429);
  EXPECT_NE(reply.header("retry-after"), "");
  EXPECT_EQ(Json::parse(reply.body)["error"]["code"], "rate_limit_exceeded");
  EXPECT_EQ(server.post(kChatPath, chat_body("Hello!"), bob).status, 200);
  busy.close();
}

TEST(ApiOperationsTest, AFullQueueIs429) {
  ApiSetup setup = {.options = quiet_options()};
  setup.options.dispatcher.max_running = 1;
  setup.options.dispatcher.max_queued = 1;
  ApiServer server(setup);
  server.ready();
  HttpClient first = open_stream(server, kChatPath, chat_body("Count.", endless()));
  EXPECT_EQ(first.read_head().status, 200);
  ASSERT_TRUE(ApiServer::eventually([&] { return server.load("running") == 1; }));
  HttpClient second = open_stream(server, kChatPath, chat_body("Count.", endless()));
  EXPECT_EQ(second.read_head().status, 200);  // it waits, and its stream has begun
  for (const DialectCase& dialect : all_dialects()) {
    const HttpReply reply = server.post(dialect.path, dialect.body("Hello!", Json::object()));
    EXPECT_EQ(reply.status, 429) << dialect.name;
    EXPECT_NE(reply.header("retry-after"), "");
  }
  first.close();
  second.close();
  EXPECT_TRUE(server.becomes_idle());
  EXPECT_EQ(server.post(kChatPath, chat_body("Hello!")).status, 200);
}

TEST(ApiOperationsTest, PagesOfOthersAreRefusedUnlessTheyAreAllowed) {
  const Headers foreign = {{"Origin", "https://evil.example"}};
  expect_refused(mini_server().get("/v1/models", foreign), 403, "evil.example");
  HttpClient rebound(mini_server().port());
  ASSERT_TRUE(rebound.send("GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n"));
  expect_refused(rebound.read_reply(), 403, "evil.example");
  ApiSetup setup = with_keys();
  setup.options.cors_origins = {"https://app.example"};
  ApiServer server(setup);
  server.ready();
  const Headers app = {{"Origin", "https://app.example"},
                       {"Access-Control-Request-Method", "POST"},
                       {"Access-Control-Request-Headers", "authorization, x-stainless-os"}};
  const HttpReply preflight = server.call({.method = "OPTIONS", .path = kChatPath, .headers = app});
  EXPECT_EQ(preflight.status, 204);  // without a key
  EXPECT_EQ(preflight.header("access-control-allow-origin"), "https://app.example");
  EXPECT_EQ(preflight.header("access-control-allow-headers"), "authorization, x-stainless-os");
  EXPECT_THAT(preflight.header("access-control-allow-methods"), HasSubstr("POST"));
  const HttpReply reply =
      server.post(kChatPath, chat_body("Hello!"),
                  {{"Origin", "https://app.example"}, {"Authorization", "Bearer secret-of-ann"}});
  EXPECT_EQ(reply.header("access-control-allow-origin"), "https://app.example");
}

TEST(ApiOperationsTest, ListensWhileTheModelLoads) {
  std::promise<void> go;
  const std::shared_future<void> may_load = go.get_future().share();
  ApiSetup setup = {.options = quiet_options()};
  setup.before_loading = [may_load] { may_load.wait(); };
  ApiServer server(setup);
  for (const DialectCase& dialect : all_dialects()) {
    const HttpReply reply = server.post(dialect.path, dialect.body("Hello!", Json::object()));
    EXPECT_EQ(reply.status, 503) << dialect.name;
    EXPECT_THAT(error_text(reply), HasSubstr("the model is loading"));
    EXPECT_NE(reply.header("retry-after"), "");
  }
  const HttpReply ready = server.get("/health");
  EXPECT_EQ(ready.status, 503);
  EXPECT_EQ(Json::parse(ready.body)["error"]["message"], "Loading model");
  EXPECT_EQ(server.get("/health/ready").status, 503);
  EXPECT_EQ(server.get("/health/live").status, 200);
  EXPECT_EQ(server.get("/v1/models").status, 200);
  EXPECT_EQ(server.get("/metrics").status, 200);
  go.set_value();
  server.ready();
  EXPECT_EQ(server.get("/health").status, 200);
  EXPECT_EQ(server.post(kChatPath, chat_body("Hello!")).status, 200);
  const Json line = Json::parse(server.server().ready_json());
  EXPECT_EQ(line["event"], "ready");
  EXPECT_EQ(line["url"], "http://127.0.0.1:" + std::to_string(server.port()));
  EXPECT_THAT(line["models"], Contains("deepseek-flash"));
}

TEST(ApiOperationsTest, AModelThatCannotBeLoadedIsSaid) {
  ApiSetup setup = {.options = quiet_options(), .model = "/nowhere"};
  ApiServer server(setup);
  const Status status = server.server().wait_until_ready();
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, HasSubstr("/nowhere"));
  EXPECT_EQ(server.get("/health/live").status, 503);
  expect_refused(server.post(kChatPath, chat_body("x")), 503, "could not be loaded");
}

TEST(ApiOperationsTest, WhileItDrainsReadinessIsRedAndLivenessGreen) {
  ApiSetup setup = {.options = quiet_options()};
  setup.options.shutdown_timeout = std::chrono::minutes(10);
  ApiServer server(setup);
  server.ready();
  HttpClient last = open_stream(server, kChatPath, chat_body("Count.", endless(20'000)));
  EXPECT_EQ(last.read_head().status, 200);
  ASSERT_NE(last.read_body_until("content\":\"\"").size(), 0U);
  server.server().finish();
  ASSERT_TRUE(ApiServer::eventually([&] { return server.get("/health/ready").status == 503; }));
  EXPECT_EQ(server.get("/health/live").status, 200);
  const HttpReply refused = server.post(kChatPath, chat_body("Hello!"));
  expect_refused(refused, 503, "shutting down");
  EXPECT_NE(refused.header("retry-after"), "");
  // The answer in flight goes on.
  EXPECT_THAT(last.read_body_until("\"content\":\""), HasSubstr("\"content\":\""));
  server.server().finish();  // the second time means now
  const std::string rest = last.read_body();
  EXPECT_THAT(rest, HasSubstr("\"error\""));
  EXPECT_EQ(rest.find("[DONE]"), std::string::npos);
  server.server().wait_until_finished();
}

TEST(ApiOperationsTest, AnswersInFlightEndBeforeTheServerDoes) {
  ApiSetup setup = {.options = quiet_options()};
  setup.options.shutdown_timeout = std::chrono::minutes(10);
  ApiServer server(setup);
  server.ready();
  HttpClient last = open_stream(server, kChatPath, chat_body("Count.", endless(60)));
  EXPECT_EQ(last.read_head().status, 200);
  server.server().finish();
  const std::string text = last.read_body();
  EXPECT_THAT(text, ::testing::EndsWith("data: [DONE]\n\n"));
  server.server().wait_until_finished();
}

// What a test's requests leave in the log, as JSON lines.
std::vector<Json> logged(const std::function<void(const ApiServer&)>& ask) {
  const std::filesystem::path file =
      std::filesystem::path(::testing::TempDir()) / "api_operations_log.jsonl";
  std::filesystem::remove(file);
  {
    set_log_style(LogStyle::kJson);
    EXPECT_TRUE(log_to_file(file));
    ApiSetup setup = {.options = quiet_options()};
    setup.options.logs_requests = true;
    ApiServer server(setup);
    server.ready();
    ask(server);
  }
  std::vector<Json> lines;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) lines.push_back(Json::parse(line));
  set_log_style(LogStyle::kText);
  return lines;
}

TEST(ApiLogTest, ARequestIsOneLineAndHasNoWordOfThePrompt) {
  const std::vector<Json> lines = logged([](const ApiServer& server) {
    const Headers id = {{"x-request-id", "mine-1"}};
    const Json more = {{"x_unknown", "private-value"}};
    server.ask(kChatPath, chat_body("My zebra is called Milo.", more), id);
    Json body = messages_body("My zebra is called Milo.");
    body["dsh_session_log"] = {{"events", {{{"text", "zebra-log"}}}}};
    server.ask(kMessagesPath, body);
    server.post(kChatPath, chat_body("zebra", {{"temperature", 3}}));
  });
  ASSERT_EQ(lines.size(), 3U);
  for (const Json& line : lines) {
    EXPECT_EQ(line["event"], "request");
    EXPECT_EQ(line.dump().find("zebra"), std::string::npos) << line;
    EXPECT_EQ(line.dump().find("Milo"), std::string::npos) << line;
    EXPECT_EQ(line.dump().find("private-value"), std::string::npos) << line;
    EXPECT_EQ(line.dump().find("dsh_session_log"), std::string::npos) << line;
  }
  // A line is written when its answer has been sent: the next request's may come first.
  const auto line_with = [&](const char* name, const Json& value) {
    const auto at = std::ranges::find_if(
        lines, [&](const Json& line) { return line.value(name, Json()) == value; });
    EXPECT_NE(at, lines.end()) << name << " " << value;
    return at == lines.end() ? Json::object() : *at;
  };
  const Json first = line_with("id", "mine-1");
  EXPECT_EQ(first.value("ignored_fields", Json()), Json::array({"x_unknown"}));
  for (const char* name :
       {"model", "path", "status", "prompt_tokens", "cached_tokens", "completion_tokens",
        "queue_ms", "prefill_ms", "decode_ms", "cache_source", "finish"}) {
    EXPECT_TRUE(first.contains(name)) << name;
  }
  EXPECT_EQ(line_with("status", 400).value("error", ""), "bad_request");
}

}  // namespace
}  // namespace locket::server
