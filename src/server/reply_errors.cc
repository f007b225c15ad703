#include "server/reply_errors.h"

#include <fmt/format.h>

#include "base/check.h"
#include "server/reply_json.h"

namespace locket::server {
namespace {

constexpr std::string_view kInvalidRequest = "invalid_request_error";
constexpr std::string_view kServerError = "server_error";

struct Kind {
  int status = 500;
  std::string_view type = kServerError;
  std::string_view code = kServerError;
};

Kind kind_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kBadRequest:
      return {400, kInvalidRequest, kInvalidRequest};
    case ErrorCode::kNotFound:
      // The only thing that a request names is the model.
      return {404, kInvalidRequest, "model_not_found"};
    case ErrorCode::kUnsupported:
      return {400, kInvalidRequest, "unsupported"};
    case ErrorCode::kContextTooLong:
      return {400, kInvalidRequest, "context_length_exceeded"};
    case ErrorCode::kOverBudget:
      return {503, "service_unavailable_error", "over_budget"};
    case ErrorCode::kCancelled:
      return {503, "service_unavailable_error", "cancelled"};
    case ErrorCode::kOverloaded:
      return {429, "rate_limit_error", "rate_limit_exceeded"};
    case ErrorCode::kBadCheckpoint:
    case ErrorCode::kBadMemory:
    case ErrorCode::kIo:
    case ErrorCode::kInternal:
      return {};
    case ErrorCode::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

// The names of the Messages dialect.
std::string_view messages_type(const ApiError& error) {
  switch (error.status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    default:
      return error.status >= 500 ? "api_error" : kInvalidRequest;
  }
}

std::string with_phrase(std::string_view phrase, const std::string& message) {
  if (message.find(phrase) != std::string::npos) return message;
  return fmt::format("{}: {}", phrase, message);
}

std::string message_in(Dialect dialect, const ApiError& error) {
  const bool is_length = error.code == "context_length_exceeded";
  if (!is_length || dialect != Dialect::kMessages) return error.message;
  return with_phrase("prompt is too long", error.message);
}

}  // namespace

ApiError api_error(const Error& error) {
  const Kind kind = kind_of(error.code);
  ApiError out = {.status = kind.status,
                  .type = std::string(kind.type),
                  .code = std::string(kind.code),
                  .message = error.message};
  if (error.code == ErrorCode::kContextTooLong &&
      error.message.find("maximum context length") == std::string::npos) {
    out.message = "This exceeds the maximum context length: " + error.message;
  }
  return out;
}

ApiError invalid_key_error() {
  return {.status = 401,
          .type = "authentication_error",
          .code = "invalid_api_key",
          .message =
              "The API key is missing or wrong; send it as \"Authorization: Bearer KEY\" or "
              "\"x-api-key: KEY\"."};
}

ApiError unknown_route_error(std::string_view method, std::string_view path) {
  return {.status = 404,
          .type = std::string(kInvalidRequest),
          .code = "unknown_url",
          .message = fmt::format("There is no {} {} here.", method, path)};
}

ApiError plain_error(int status, std::string message) {
  if (status == 429) return api_error({ErrorCode::kOverloaded, std::move(message)});
  const std::string_view type = status >= 500 ? kServerError : kInvalidRequest;
  return {.status = status,
          .type = std::string(type),
          .code = std::string(type),
          .message = std::move(message)};
}

std::string error_object(Dialect dialect, const ApiError& error) {
  JsonObject out;
  if (dialect == Dialect::kMessages) {
    out.text("type", messages_type(error)).text("message", message_in(dialect, error));
    return out.str();
  }
  out.text("message", message_in(dialect, error))
      .text("type", error.type)
      .null("param")
      .text("code", error.code);
  return out.str();
}

std::string error_body(Dialect dialect, const ApiError& error) {
  JsonObject out;
  if (dialect == Dialect::kMessages) out.text("type", "error");
  return out.json("error", error_object(dialect, error)).str();
}

int http_status(const Error& error) { return api_error(error).status; }

std::string error_body(Dialect dialect, const Error& error) {
  return error_body(dialect, api_error(error));
}

}  // namespace locket::server
