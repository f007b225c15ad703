#include "server/request_scope.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"

namespace locket::server {
namespace {

constexpr std::size_t kMostIdBytes = 128;

bool can_be_repeated(std::string_view id) {
  return !id.empty() && id.size() <= kMostIdBytes && std::ranges::all_of(id, [](char letter) {
    return letter > ' ' && letter < 0x7f && letter != '"' && letter != '\\';
  });
}

}  // namespace

std::string request_id(const HttpRequest& request) {
  const std::string_view wanted = request.header("x-request-id");
  return can_be_repeated(wanted) ? std::string(wanted) : random_uuid();
}

RequestScope make_scope(Serving& serving, const std::shared_ptr<HttpExchange>& exchange,
                        RouteMatch route) {
  const HttpRequest& request = exchange->request();
  RequestScope scope = {.serving = serving,
                        .exchange = exchange,
                        .route = std::move(route),
                        .start = monotonic_seconds()};
  scope.dialect = dialect_of(scope.route, request.path);
  scope.key_name = serving.keys().check_client(request).name;
  scope.headers = serving.guard().check(request).headers;
  scope.record.id = request_id(request);
  scope.record.method = request.method;
  scope.record.path = request.path;
  scope.record.route = scope.route.pattern;
  scope.record.peer = request.peer;
  scope.record.tenant = scope.key_name;
  for (auto& header : id_headers(scope.dialect, scope.record.id)) {
    scope.headers.push_back(std::move(header));
  }
  return scope;
}

void answer(RequestScope& scope, HttpResponse response) {
  response.headers.insert(response.headers.end(), scope.headers.begin(), scope.headers.end());
  scope.record.status = response.status;
  scope.record.total_seconds = monotonic_seconds() - scope.start;
  scope.serving.record(scope.record);
  scope.exchange->respond(std::move(response));
}

void answer_json(RequestScope& scope, std::string body) {
  answer(scope, {.body = std::move(body)});
}

void answer_error(RequestScope& scope, const Error& error) {
  const int status = http_status(error);
  scope.record.error = error_code_name(error.code);
  answer(scope, {.status = status,
                 .body = error_body(scope.dialect, error),
                 .headers = retry_headers(status)});
}

HttpHeaders id_headers(Dialect dialect, const std::string& id) {
  HttpHeaders headers = {{"x-request-id", id}};
  if (dialect == Dialect::kMessages) headers.emplace_back("request-id", id);
  return headers;
}

HttpHeaders retry_headers(int status) {
  constexpr int kTooManyRequests = 429;
  constexpr int kUnavailable = 503;
  if (status != kTooManyRequests && status != kUnavailable) return {};
  return {{"Retry-After", "1"}};
}

}  // namespace locket::server
