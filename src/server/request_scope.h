// Where a request came in, for its answer and its record: made from its head, carried along.
#pragma once

#include <memory>
#include <string>

#include "server/http_exchange.h"
#include "server/reply_writer.h"
#include "server/request_record.h"
#include "server/routes.h"
#include "server/serving.h"

namespace locket::server {

struct RequestScope {
  Serving& serving;
  std::shared_ptr<HttpExchange> exchange;
  RouteMatch route;
  Dialect dialect = Dialect::kChat;  // of errors, too
  std::string key_name = {};         // of the caller; empty without keys
  HttpHeaders headers = {};          // of every answer
  double start = 0;                  // monotonic seconds
  RequestRecord record = {};         // filled as far as it is known
};

// The name of a request and its answer: the client's x-request-id, if it can be repeated, or a new
// one.
std::string request_id(const HttpRequest& request);

// What is known of a request from its head.
RequestScope make_scope(Serving& serving, const std::shared_ptr<HttpExchange>& exchange,
                        RouteMatch route);

// A whole answer, and its record.
void answer(RequestScope& scope, HttpResponse response);
void answer_json(RequestScope& scope, std::string body);
void answer_error(RequestScope& scope, const Error& error);

// The headers by which an answer is named; Messages clients read a name of their own.
HttpHeaders id_headers(Dialect dialect, const std::string& id);

// What answers of that status say besides: when to come again.
HttpHeaders retry_headers(int status);

}  // namespace locket::server
