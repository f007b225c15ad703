#include "server/routes.h"

#include <algorithm>
#include <array>

namespace locket::server {
namespace {

struct Entry {
  std::string_view path;
  std::string_view method;  // GET stands for HEAD, too
  Route route;
};

// Paths behind one of the prefixes that they are served under.
constexpr std::array<std::string_view, 5> kOpenAiPrefixes = {"/v1", "/beta/v1", "/beta",
                                                             "/anthropic/v1", ""};
constexpr Entry kOpenAi[] = {
    {"/chat/completions", "POST", Route::kChat},
    {"/chat/completions/render", "POST", Route::kRenderChat},
    {"/completions", "POST", Route::kCompletions},
    {"/responses", "POST", Route::kResponses},
    {"/models", "GET", Route::kModels},
    {"/files", "", Route::kUnsupported},
};
constexpr Entry kExact[] = {
    {"/health", "GET", Route::kHealth},
    {"/health/live", "GET", Route::kLive},
    {"/health/ready", "GET", Route::kReady},
    {"/api/hello", "GET", Route::kHello},
    {"/v1/api/hello", "GET", Route::kHello},
    {"/anthropic/api/hello", "GET", Route::kHello},
    {"/", "GET", Route::kPage},
    {"/ui", "GET", Route::kPage},
    {"/ui/state", "GET", Route::kPageState},
    {"/metrics", "GET", Route::kMetrics},
    {"/version", "GET", Route::kVersion},
    {"/v1/messages", "POST", Route::kMessages},
    {"/anthropic/messages", "POST", Route::kMessages},
    {"/anthropic/v1/messages", "POST", Route::kMessages},
    {"/v1/messages/count_tokens", "POST", Route::kCountTokens},
    {"/anthropic/messages/count_tokens", "POST", Route::kCountTokens},
    {"/anthropic/v1/messages/count_tokens", "POST", Route::kCountTokens},
    {"/tokenize", "POST", Route::kTokenize},
    {"/detokenize", "POST", Route::kDetokenize},
};

RouteMatch matched(const Entry& entry, std::string pattern, std::string_view method) {
  RouteMatch match = {.route = entry.route, .pattern = std::move(pattern)};
  const bool is_any = entry.method.empty();
  const bool is_same =
      is_any || method == entry.method || (method == "HEAD" && entry.method == "GET");
  if (is_same) return match;
  match.is_wrong_method = true;
  match.allowed_methods = entry.method == "GET" ? "GET, HEAD" : std::string(entry.method);
  return match;
}

}  // namespace

RouteMatch match_route(std::string_view method, std::string_view path) {
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  for (const Entry& entry : kExact) {
    if (path == entry.path) return matched(entry, std::string(entry.path), method);
  }
  for (const std::string_view prefix : kOpenAiPrefixes) {
    if (!path.starts_with(prefix)) continue;
    const std::string_view rest = path.substr(prefix.size());
    for (const Entry& entry : kOpenAi) {
      if (rest == entry.path) return matched(entry, std::string(path), method);
    }
    constexpr std::string_view kModelPrefix = "/models/";
    constexpr std::string_view kFilePrefix = "/files/";
    if (rest.starts_with(kModelPrefix) && rest.size() > kModelPrefix.size()) {
      RouteMatch match =
          matched({"", "GET", Route::kModel}, std::string(prefix) + "/models/{id}", method);
      match.name = rest.substr(kModelPrefix.size());
      return match;
    }
    if (rest.starts_with(kFilePrefix)) {
      return {.route = Route::kUnsupported, .pattern = std::string(prefix) + "/files/{id}"};
    }
  }
  return {};
}

RouteFacts facts_of(Route route) {
  switch (route) {
    case Route::kHealth:
    case Route::kLive:
    case Route::kReady:
    case Route::kHello:
    case Route::kPage:
      return {.is_open = true};
    case Route::kChat:
    case Route::kTokenize:
    case Route::kDetokenize:
    case Route::kRenderChat:
      return {.needs_model = true};
    case Route::kCompletions:
      return {.needs_model = true, .dialect = Dialect::kCompletions};
    case Route::kResponses:
      return {.needs_model = true, .dialect = Dialect::kResponses};
    case Route::kMessages:
    case Route::kCountTokens:
      return {.needs_model = true, .dialect = Dialect::kMessages};
    case Route::kPageState:
    case Route::kMetrics:
    case Route::kVersion:
    case Route::kModels:
    case Route::kModel:
    case Route::kUnsupported:
    case Route::kNone:
    case Route::kCount:
      break;
  }
  return {};
}

Dialect dialect_of(const RouteMatch& match, std::string_view path) {
  const RouteFacts facts = facts_of(match.route);
  if (facts.needs_model) return facts.dialect;
  return path.starts_with("/anthropic/") ? Dialect::kMessages : Dialect::kChat;
}

}  // namespace locket::server
