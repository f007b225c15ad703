// The addresses of the server. Every OpenAI-style path is there bare, under /v1 and under /beta;
// those of the Messages dialect under /anthropic and under /v1. Pure function, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "server/reply_writer.h"

namespace locket::server {

enum class Route {
  kHealth,  // open to everybody
  kLive,    // open
  kReady,   // open
  kHello,   // open: what clients ask before they speak
  kPage,    // open: the page holds no data
  kPageState,
  kMetrics,
  kVersion,
  kModels,
  kModel,  // one; RouteMatch::name
  kChat,
  kCompletions,
  kResponses,
  kMessages,
  kCountTokens,  // of a Messages request
  kTokenize,
  kDetokenize,
  kRenderChat,
  kUnsupported,  // known, and not offered: files
  kNone,
  kCount
};

struct RouteMatch {
  Route route = Route::kNone;
  std::string pattern = {};      // of a fixed set, for metrics: "/v1/models/{id}"
  std::string name = {};         // kModel
  bool is_wrong_method = false;  // the path exists, with another method
  std::string allowed_methods = {};
};

RouteMatch match_route(std::string_view method, std::string_view path);

struct RouteFacts {
  bool is_open = false;      // to those who have no key
  bool needs_model = false;  // 503 until it is there
  Dialect dialect = Dialect::kChat;
};
RouteFacts facts_of(Route route);

// In whose words errors are written.
Dialect dialect_of(const RouteMatch& match, std::string_view path);

}  // namespace locket::server
