// What the tests of the whole API share: a real server over a small model in the test's process,
// requests in every dialect, and answers taken apart as strictly as the strictest client does.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "server/server.h"
#include "tests/support/chat_stream.h"
#include "tests/support/event_stream.h"
#include "tests/support/http_client.h"
#include "tests/support/messages_stream.h"
#include "tests/support/responses_stream.h"

namespace locket::server {

using Json = nlohmann::json;
using test_support::HttpCall;
using test_support::HttpClient;
using test_support::HttpReply;
using test_support::kHttpTimeoutMs;
using test_support::StreamCheck;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Headers = std::vector<std::pair<std::string, std::string>>;

inline std::filesystem::path mini_folder() { return std::filesystem::path(LOCKET_MODELS) / "mini"; }
// Its weights are random numbers, and so are its words.
inline std::filesystem::path odd_folder() {
  return std::filesystem::path(LOCKET_TEST_DATA) / "checkpoints" / "odd";
}

struct ApiSetup {
  ServerOptions options = {};
  std::filesystem::path model = mini_folder();
  engine::EngineOptions engine = {};
  std::function<void()> before_loading = {};
};

// Options of a test: any port, no log.
inline ServerOptions quiet_options() {
  ServerOptions options;
  options.http.port = 0;
  options.logs_requests = false;
  options.rates_interval = std::chrono::milliseconds(0);
  return options;
}

class ApiServer {
 public:
  explicit ApiServer(ApiSetup setup = {.options = quiet_options()}) {
    if (setup.engine.threads == 0) setup.engine.threads = 2;
    if (setup.engine.pool_budget_bytes == 0) {
      setup.engine.pool_budget_bytes = std::uint64_t{512} << 20;
    }
    auto started =
        Server::start(setup.options, [setup](const std::function<void(double)>& on_progress) {
          if (setup.before_loading) setup.before_loading();
          on_progress(0.5);
          return service::LoadedModel::open(setup.model, setup.engine);
        });
    if (!started) throw std::runtime_error(started.error().message);
    server_ = std::move(*started);
  }

  Server& server() { return *server_; }
  std::uint16_t port() const { return server_->port(); }
  ApiServer& ready() {
    const Status status = server_->wait_until_ready();
    if (!status) throw std::runtime_error(status.error().message);
    return *this;
  }

  HttpReply call(const HttpCall& call) const { return HttpClient(port()).request(call); }
  HttpReply get(const std::string& path, const Headers& headers = {}) const {
    return call({.path = path, .headers = headers});
  }
  HttpReply post(const std::string& path, const Json& body, const Headers& headers = {}) const {
    return post_text(path, body.dump(), headers);
  }
  HttpReply post_text(const std::string& path, std::string body, Headers headers = {}) const {
    headers.emplace_back("Content-Type", "application/json");
    return call({.method = "POST", .path = path, .body = std::move(body), .headers = headers});
  }
  // The body of an answer that must be 200.
  Json ask(const std::string& path, const Json& body, const Headers& headers = {}) const {
    const HttpReply reply = post(path, body, headers);
    EXPECT_EQ(reply.status, 200) << reply.body;
    return Json::parse(reply.body, nullptr, false);
  }

  // What the server says about itself.
  Json state(const Headers& headers = {}) const {
    return Json::parse(get("/ui/state", headers).body, nullptr, false);
  }
  std::size_t load(const char* name) const { return state()["load"][name].get<std::size_t>(); }
  // Nothing runs and nothing waits, or will within the time.
  bool becomes_idle() const {
    return eventually([this] { return load("running") + load("queued") == 0; });
  }
  // Waits for what only other threads can make true.
  static bool eventually(const std::function<bool()>& is_true) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kHttpTimeoutMs);
    while (!is_true()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  std::unique_ptr<Server> server_;
};

// One server for all tests of a program that need nothing special.
inline ApiServer& mini_server() {
  static ApiServer server;
  return server.ready();
}

inline const char* const kChatPath = "/v1/chat/completions";
inline const char* const kMessagesPath = "/v1/messages";
inline const char* const kResponsesPath = "/v1/responses";
inline const char* const kCompletionsPath = "/v1/completions";

inline Json with(Json body, const Json& more) {
  body.update(more);
  return body;
}

// One question without thinking, answered greedily.
inline Json chat_body(const std::string& text, const Json& more = Json::object()) {
  return with({{"model", "deepseek-flash"},
               {"messages", {{{"role", "user"}, {"content", text}}}},
               {"thinking", {{"type", "disabled"}}},
               {"temperature", 0},
               {"max_tokens", 40}},
              more);
}
inline Json messages_body(const std::string& text, const Json& more = Json::object()) {
  return chat_body(text, more);
}
inline Json responses_body(const std::string& text, const Json& more = Json::object()) {
  return with({{"model", "deepseek-flash"},
               {"input", text},
               {"reasoning", {{"effort", "none"}}},
               {"temperature", 0},
               {"max_output_tokens", 40}},
              more);
}
inline Json completion_body(const std::string& text, const Json& more = Json::object()) {
  return with(
      {{"model", "deepseek-flash"}, {"prompt", text}, {"temperature", 0}, {"max_tokens", 40}},
      more);
}

// The same question in every dialect.
struct DialectCase {
  const char* name;
  const char* path;
  Json (*body)(const std::string& text, const Json& more);
  const char* limit;  // the name of max_tokens
};
inline const std::vector<DialectCase>& all_dialects() {
  static const std::vector<DialectCase> dialects = {
      {"chat", kChatPath, &chat_body, "max_tokens"},
      {"messages", kMessagesPath, &messages_body, "max_tokens"},
      {"responses", kResponsesPath, &responses_body, "max_output_tokens"},
      {"completions", kCompletionsPath, &completion_body, "max_tokens"}};
  return dialects;
}

// An answer that goes on until it is stopped.
inline Json endless(std::size_t tokens = 100'000) {
  return {{"ignore_eos", true}, {"max_tokens", tokens}, {"stream", true}};
}

inline std::string repeated(std::string_view text, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

inline std::string content_of(const Json& body) {
  return body["choices"][0]["message"]["content"].get<std::string>();
}

// The error's text; fails the test if the body is not an error of the dialect.
inline std::string error_text(const HttpReply& reply) {
  const Json json = Json::parse(reply.body, nullptr, false);
  if (!json.is_object() || !json.contains("error") || !json["error"].is_object()) {
    ADD_FAILURE() << "no error: " << reply.body;
    return "";
  }
  EXPECT_TRUE(json["error"]["type"].is_string()) << reply.body;
  return json["error"]["message"].get<std::string>();
}
inline void expect_refused(const HttpReply& reply, int status, std::string_view text) {
  EXPECT_EQ(reply.status, status) << reply.body;
  EXPECT_THAT(error_text(reply), HasSubstr(std::string(text)));
}

// A stream as one reply; the checks of its dialect have passed, or the test fails.
inline HttpReply stream_reply(const ApiServer& server, const std::string& path, const Json& body,
                              const Headers& headers = {}) {
  HttpReply reply = server.post(path, with(body, {{"stream", true}}), headers);
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_TRUE(reply.is_complete);
  EXPECT_THAT(reply.header("content-type"), HasSubstr("text/event-stream"));
  return reply;
}
inline StreamCheck checked(const std::string& path, std::string_view text,
                           const test_support::ChatExpectation& expectation = {}) {
  const test_support::EventStream stream = test_support::read_event_stream(text);
  EXPECT_THAT(stream.problems, IsEmpty()) << text;
  StreamCheck check;
  if (path.find("/messages") != std::string::npos) {
    check = test_support::check_messages_stream(stream.events);
  } else if (path.find("/responses") != std::string::npos) {
    check = test_support::check_responses_stream(stream.events, test_support::CutCalls::kAllowed);
  } else if (path.find("/chat/") != std::string::npos) {
    check = test_support::check_chat_stream(stream.events, expectation);
  } else {
    check = test_support::check_completion_stream(stream.events, expectation);
  }
  EXPECT_THAT(check.problems, IsEmpty()) << text;
  return check;
}
// What the stream adds up to.
inline Json streamed(const ApiServer& server, const std::string& path, const Json& body,
                     test_support::ChatExpectation expectation = {}) {
  const StreamCheck check = checked(path, stream_reply(server, path, body).body, expectation);
  EXPECT_TRUE(check.error.is_null()) << check.error;
  return Json::parse(check.body.dump());
}

// A request whose answer is read later, piece by piece.
inline HttpClient open_stream(const ApiServer& server, const std::string& path, const Json& body,
                              Headers headers = {}) {
  HttpClient client(server.port());
  headers.emplace_back("Content-Type", "application/json");
  EXPECT_TRUE(client.send(HttpClient::request_bytes(
      {.method = "POST", .path = path, .body = body.dump(), .headers = headers})));
  return client;
}

// tests/data/clients/`name`.json
inline Json recorded_request(const std::string& name) {
  std::ifstream file(std::filesystem::path(LOCKET_TEST_DATA) / "clients" / (name + ".json"));
  return Json::parse(file);
}

// The words of an answer in any dialect, body or joined stream.
inline std::string words_of(const Json& body) {
  if (body.contains("choices")) {
    const Json& choice = body["choices"][0];
    return choice.contains("text") ? choice["text"] : choice["message"]["content"];
  }
  std::string text;
  for (const Json& part : body.contains("output") ? body["output"] : body["content"]) {
    if (part["type"] == "text") text += part["text"].get<std::string>();
    if (part["type"] == "message") text += part["content"][0]["text"].get<std::string>();
  }
  return text;
}

// Prompt tokens and how many of them were remembered, in any dialect.
struct PromptUse {
  std::size_t tokens = 0;
  std::size_t hits = 0;
  std::size_t replayed = 0;  // the usage extension
};
inline PromptUse prompt_use(const Json& body) {
  const Json& own = body["usage"]["locket"]["usage"];
  return {own["prompt_tokens"], own["hit_tokens"], own["replayed_tokens"]};
}

}  // namespace locket::server
