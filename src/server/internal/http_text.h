// The bytes of an answer: status line and headers, chunks, and the error bodies of the HTTP layer
// itself. Plain text functions without sockets. What a handler puts into a header cannot end it:
// control characters are sent as blanks.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "server/http_exchange.h"

namespace locket::server {

// How the reader finds the end of the body.
enum class Framing { kLength, kChunked, kUntilClose, kCount };

struct HeadFacts {
  int version = 11;  // of the request: 10 or 11
  Framing framing = Framing::kLength;
  std::size_t body_bytes = 0;  // for kLength
  bool keeps_alive = true;
};

inline constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
inline constexpr std::string_view kLastChunk = "0\r\n\r\n";

// Status line, headers and the empty line.
std::string response_head(const HttpResponse& response, const HeadFacts& facts);

// Statuses whose answer never has a body.
bool has_no_body(int status);

// `bytes` must not be empty: that would be the last chunk.
void append_chunk(std::string& out, std::string_view bytes);

// A JSON body that the readers of all dialects understand. `message` is our own text: it holds no
// quotes, no backslashes and nothing that a client sent.
HttpResponse plain_error(int status, std::string_view message);

}  // namespace locket::server
