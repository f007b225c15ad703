#include "server/internal/http_text.h"

#include <fmt/format.h>
#include <iterator>

namespace locket::server {
namespace {

std::string_view status_reason(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 201:
      return "Created";
    case 202:
      return "Accepted";
    case 204:
      return "No Content";
    case 304:
      return "Not Modified";
    case 400:
      return "Bad Request";
    case 401:
      return "Unauthorized";
    case 402:
      return "Payment Required";
    case 403:
      return "Forbidden";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 409:
      return "Conflict";
    case 411:
      return "Length Required";
    case 413:
      return "Content Too Large";
    case 415:
      return "Unsupported Media Type";
    case 417:
      return "Expectation Failed";
    case 422:
      return "Unprocessable Content";
    case 429:
      return "Too Many Requests";
    case 431:
      return "Request Header Fields Too Large";
    case 500:
      return "Internal Server Error";
    case 501:
      return "Not Implemented";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
  }
  return "Status";
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  const auto append_safe = [&out](std::string_view text) {
    for (const char letter : text) {
      const auto code = static_cast<unsigned char>(letter);
      out += code < 0x20 || code == 0x7f ? ' ' : letter;
    }
  };
  append_safe(name);
  out += ": ";
  append_safe(value);
  out += "\r\n";
}

}  // namespace

bool has_no_body(int status) { return status == 204 || status == 304 || status / 100 == 1; }

std::string response_head(const HttpResponse& response, const HeadFacts& facts) {
  std::string out =
      fmt::format("HTTP/1.1 {} {}\r\n", response.status, status_reason(response.status));
  if (!has_no_body(response.status)) {
    if (!response.content_type.empty()) append_header(out, "Content-Type", response.content_type);
    if (facts.framing == Framing::kLength) {
      append_header(out, "Content-Length", std::to_string(facts.body_bytes));
    }
    if (facts.framing == Framing::kChunked) append_header(out, "Transfer-Encoding", "chunked");
  }
  for (const auto& [name, value] : response.headers) append_header(out, name, value);
  if (!facts.keeps_alive) append_header(out, "Connection", "close");
  if (facts.keeps_alive && facts.version == 10) append_header(out, "Connection", "keep-alive");
  out += "\r\n";
  return out;
}

void append_chunk(std::string& out, std::string_view bytes) {
  out.reserve(out.size() + bytes.size() + 20);
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", bytes.size());
  out += bytes;
  out += "\r\n";
}

HttpResponse plain_error(int status, std::string_view message) {
  std::string_view type = status < 500 ? "invalid_request_error" : "server_error";
  if (status == 503) type = "overloaded_error";
  HttpResponse response;
  response.status = status;
  response.body = fmt::format(
      R"({{"type":"error","error":{{"message":"{}","type":"{}","param":null,"code":"{}"}}}})",
      message, type, type);
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace locket::server
