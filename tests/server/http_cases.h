// What the tests of the HTTP layer share: a handler whose answers a test writes or gives by hand,
// and a server with it. All waits end after kHttpTimeoutMs.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "server/http_server.h"
#include "tests/support/http_client.h"

namespace locket::server {

using test_support::HttpCall;
using test_support::HttpClient;
using test_support::HttpReply;
using test_support::kHttpTimeoutMs;
using ExchangePtr = std::shared_ptr<HttpExchange>;

// Counts events of other threads.
class Signal {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    count_ += 1;
    changed_.notify_all();  // with the lock: the one who waits may let the signal go
  }
  // Whether it has been set `count` times, in time.
  bool wait(std::size_t count = 1) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::milliseconds(kHttpTimeoutMs),
                             [&] { return count_ >= count; });
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return count_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t count_ = 0;
};

// Answers paths that have a route by it, and hands all others to next().
class ScriptedHandler final : public HttpHandler {
 public:
  using Route = std::function<void(const ExchangePtr&)>;

  std::map<std::string, Route> routes;                    // set before the server starts
  std::function<Refusal(const HttpRequest&)> judge = {};  // set before the server starts

  Refusal check_head(const HttpRequest& head) override {
    EXPECT_TRUE(head.body.empty());
    return judge ? judge(head) : Refusal{};
  }

  void handle(ExchangePtr exchange) override {
    const auto route = routes.find(exchange->request().path);
    if (route != routes.end()) {
      route->second(exchange);
      return;
    }
    {
      const std::lock_guard lock(mutex_);
      held_.push_back(std::move(exchange));
    }
    changed_.notify_all();
  }

  // The next exchange without a route; none if it does not come in time.
  ExchangePtr next() {
    std::unique_lock lock(mutex_);
    const bool has_come = changed_.wait_for(lock, std::chrono::milliseconds(kHttpTimeoutMs),
                                            [&] { return !held_.empty(); });
    if (!has_come) return nullptr;
    ExchangePtr exchange = std::move(held_.front());
    held_.pop_front();
    return exchange;
  }
  std::size_t held_count() {
    const std::lock_guard lock(mutex_);
    return held_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<ExchangePtr> held_;
};

// "METHOD PATH?QUERY BODY", so that a test sees what has arrived.
inline void echo(const ExchangePtr& exchange) {
  const HttpRequest& request = exchange->request();
  exchange->respond(
      {.content_type = "text/plain",
       .body = request.method + " " + request.path + "?" + request.query + " " + request.body});
}

inline HttpServerOptions free_port() {
  HttpServerOptions options;
  options.port = 0;
  return options;
}

inline std::unique_ptr<HttpServer> start_server(const HttpServerOptions& options,
                                                HttpHandler& handler) {
  auto server = HttpServer::start(options, handler);
  if (!server) {
    ADD_FAILURE() << server.error().message;
    return nullptr;
  }
  return std::move(*server);
}

// The error's message, if the body is the JSON of an error.
inline std::string error_message(const HttpReply& reply) {
  const auto json = nlohmann::json::parse(reply.body, nullptr, false);
  if (!json.is_object() || !json.contains("error")) return "";
  return json["error"].value("message", "");
}

// Waits until `is_true`, which other threads make true; for what no callback tells.
inline bool eventually(const std::function<bool()>& is_true) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(kHttpTimeoutMs);
  while (!is_true()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace locket::server
