// Request line and headers, read strictly: what two readers could understand in two ways (lengths,
// hosts, transfer codings) is refused, and so is text that is not UTF-8. The body follows the head
// either with a known length or in chunks. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "server/http_exchange.h"

namespace locket::server {

struct RequestHead {
  HttpRequest request;  // without body and peer
  int version = 11;     // 10 or 11
  bool keeps_alive = false;
  bool expects_continue = false;
  bool is_chunked = false;
  std::uint64_t body_bytes = 0;  // 0 if chunked

  bool has_body() const { return is_chunked || body_bytes > 0; }
};

// Fills `head` from the bytes up to and including the empty line; or returns the answer that
// refuses them.
std::optional<HttpResponse> parse_request_head(std::string_view bytes, RequestHead& head);

}  // namespace locket::server
