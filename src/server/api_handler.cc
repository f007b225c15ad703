#include "server/api_handler.h"

#include <fmt/format.h>
#include <utility>

#include "base/clock.h"
#include "server/endpoints.h"
#include "server/generation.h"
#include "server/reply_errors.h"
#include "server/ui_page.h"

namespace locket::server {
namespace {

constexpr int kNoContent = 204;
constexpr int kForbidden = 403;
constexpr int kWrongMethod = 405;
constexpr int kUnavailable = 503;

ApiError loading_error(const Serving& serving) {
  if (serving.stage() == Serving::Stage::kFailed) {
    return plain_error(kUnavailable, "the model could not be loaded; the server's log says why");
  }
  return plain_error(kUnavailable,
                     fmt::format("the model is loading: {:.0f} %; try again in a moment",
                                 serving.loading_progress() * 100));
}

struct Refused {
  ApiError error;
  HttpHeaders headers = {};
};

// What is wrong with a request whatever its body says.
std::optional<Refused> find_fault(const Serving& serving, const HttpRequest& head,
                                  const RouteMatch& route) {
  const RouteFacts facts = facts_of(route.route);
  if (!facts.is_open) {
    const KeyCheck key = serving.keys().check_client(head);
    if (key.outcome != KeyCheck::Outcome::kAllowed) {
      ApiError error = invalid_key_error();
      error.message = key.message;
      return Refused{std::move(error), {{"WWW-Authenticate", "Bearer"}}};
    }
  }
  if (route.route == Route::kNone) return Refused{unknown_route_error(head.method, head.path)};
  if (route.is_wrong_method) {
    return Refused{plain_error(kWrongMethod, fmt::format("{} is asked for with {}", route.pattern,
                                                         route.allowed_methods)),
                   {{"Allow", route.allowed_methods}}};
  }
  if (route.route == Route::kUnsupported) {
    return Refused{
        api_error({ErrorCode::kUnsupported, "files are not offered: this server reads text only"})};
  }
  const bool is_closing = serving.stage() == Serving::Stage::kDraining;
  if (facts.needs_model && is_closing) {
    return Refused{plain_error(kUnavailable, "the server is shutting down; ask again later")};
  }
  if (facts.needs_model && serving.model() == nullptr) return Refused{loading_error(serving)};
  return std::nullopt;
}

void append(HttpHeaders& headers, HttpHeaders more) {
  for (auto& header : more) headers.push_back(std::move(header));
}

}  // namespace

HttpHandler::Refusal ApiHandler::check_head(const HttpRequest& head) {
  const RouteMatch route = match_route(head.method, head.path);
  const Dialect dialect = dialect_of(route, head.path);
  RequestGuard::Verdict verdict = serving_.guard().check(head);
  Refusal refusal;
  refusal.is_refused = true;
  refusal.response.headers = std::move(verdict.headers);
  switch (verdict.kind) {
    case RequestGuard::Verdict::Kind::kPreflight:
      refusal.response.status = kNoContent;
      return refusal;
    case RequestGuard::Verdict::Kind::kRefused:
      refusal.response.status = kForbidden;
      refusal.response.body = error_body(dialect, plain_error(kForbidden, verdict.message));
      break;
    case RequestGuard::Verdict::Kind::kPass:
    case RequestGuard::Verdict::Kind::kCount: {
      std::optional<Refused> fault = find_fault(serving_, head, route);
      if (!fault) return {};
      refusal.response.status = fault->error.status;
      refusal.response.body = error_body(dialect, fault->error);
      append(refusal.response.headers, std::move(fault->headers));
      append(refusal.response.headers, retry_headers(fault->error.status));
      break;
    }
  }
  RequestRecord record = {.id = request_id(head),
                          .method = head.method,
                          .path = head.path,
                          .route = route.pattern,
                          .peer = head.peer,
                          .status = refusal.response.status};
  record.error = "refused";
  append(refusal.response.headers, id_headers(dialect, record.id));
  serving_.record(record);
  return refusal;
}

void ApiHandler::handle(std::shared_ptr<HttpExchange> exchange) {
  const HttpRequest& request = exchange->request();
  RequestScope scope = make_scope(serving_, exchange, match_route(request.method, request.path));
  switch (scope.route.route) {
    case Route::kChat:
    case Route::kCompletions:
    case Route::kResponses:
    case Route::kMessages:
      return generate(std::move(scope));
    case Route::kCountTokens:
    case Route::kRenderChat:
      return render_only(std::move(scope));
    case Route::kTokenize:
      return tokenize(std::move(scope));
    case Route::kDetokenize:
      return detokenize(std::move(scope));
    case Route::kModels:
    case Route::kModel:
      return list_models(scope);
    case Route::kHealth:
    case Route::kLive:
    case Route::kReady:
      return tell_health(scope);
    case Route::kMetrics:
      return tell_metrics(std::move(scope));
    case Route::kPageState:
      return tell_state(std::move(scope));
    case Route::kPage:
      return answer(scope, ui_page());
    case Route::kVersion:
      return tell_version(scope);
    case Route::kHello:
      return answer_json(scope, "{\"status\":\"ok\"}");
    case Route::kUnsupported:
    case Route::kNone:
    case Route::kCount:
      break;
  }
  answer_error(scope, {ErrorCode::kNotFound, "there is nothing here"});
}

}  // namespace locket::server
