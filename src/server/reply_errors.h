// Errors in the words of the dialects: the status, the type and the code by which clients decide
// whether to try again, shorten the conversation or give up. Clients also search the text: do not
// re-word "maximum context length" and "prompt is too long". Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "server/reply_writer.h"

namespace locket::server {

struct ApiError {
  int status = 500;
  std::string type;  // "invalid_request_error"
  std::string code;  // "context_length_exceeded"
  std::string message;
};

// kCancelled is 503: a client that left reads no answer, so who reads one is told that the server
// ends.
ApiError api_error(const Error& error);

// 401: no key, or a wrong one.
ApiError invalid_key_error();
// 404: no such address.
ApiError unknown_route_error(std::string_view method, std::string_view path);
// Any other status that the HTTP layer decides on.
ApiError plain_error(int status, std::string message);

// {"message":...,"type":...,"param":null,"code":...}; Messages: {"type":...,"message":...}.
std::string error_object(Dialect dialect, const ApiError& error);
// The body of an answer that failed.
std::string error_body(Dialect dialect, const ApiError& error);

}  // namespace locket::server
