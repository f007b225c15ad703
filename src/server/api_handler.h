// Every request that reaches the server: who may ask, what for, and who answers. Thread-safe.
#pragma once

#include <memory>

#include "server/http_exchange.h"
#include "server/request_scope.h"
#include "server/serving.h"

namespace locket::server {

class ApiHandler final : public HttpHandler {
 public:
  // `serving` must outlive it.
  explicit ApiHandler(Serving& serving) : serving_(serving) {}

  Refusal check_head(const HttpRequest& head) override;
  void handle(std::shared_ptr<HttpExchange> exchange) override;

 private:
  Serving& serving_;
};

}  // namespace locket::server
