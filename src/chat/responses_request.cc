#include "chat/responses_request.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "chat/check_messages.h"
#include "chat/json_fields.h"
#include "chat/json_value.h"
#include "chat/request_fields.h"
#include "chat/request_tools.h"
#include "chat/responses_input.h"
#include "chat/responses_tools.h"

namespace locket::chat {
namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxTopLogprobs = 20;

// What this format has beside those that formats share: first what is read, then what is known to
// mean nothing here.
constexpr std::size_t kReadFields = 9;
constexpr std::array<std::string_view, 23> kOwnFields = {"input",
                                                         "instructions",
                                                         "tools",
                                                         "tool_choice",
                                                         "reasoning",
                                                         "text",
                                                         "max_output_tokens",
                                                         "user",
                                                         "top_logprobs",
                                                         "previous_response_id",
                                                         "conversation",
                                                         "background",
                                                         "include",
                                                         "prompt",
                                                         "truncation",
                                                         "safety_identifier",
                                                         "prompt_cache_key",
                                                         "prompt_cache_retention",
                                                         "prompt_cache_options",
                                                         "context_management",
                                                         "stream_options",
                                                         "max_tool_calls",
                                                         "client_metadata"};

Result<std::vector<Message>> parse_conversation(const JsonValue& body, const IssuedItems& items) {
  std::vector<Message> messages;
  LOCKET_TRY(const auto instructions, Fields(body, "").optional_string("instructions"));
  if (instructions && !instructions->empty()) {
    messages.push_back(text_message(Role::kSystem, *instructions));
  }
  LOCKET_TRY(std::vector<Message> input, parse_responses_input(body, items));
  messages.insert(messages.end(), std::make_move_iterator(input.begin()),
                  std::make_move_iterator(input.end()));
  if (messages.empty()) {
    return fail(ErrorCode::kBadRequest,
                "input has no item that says something; it must have at least one message");
  }
  return messages;
}

Result<ResponseFormat> parse_text_format(const JsonValue& body) {
  LOCKET_TRY(const JsonValue* text, Fields(body, "").optional_object("text"));
  if (text == nullptr) return ResponseFormat{};
  LOCKET_TRY(const JsonValue* format, Fields(*text, "text").optional_object("format"));
  if (format == nullptr) return ResponseFormat{};
  const Fields fields(*format, "text.format");
  LOCKET_TRY(const std::string type, fields.required_string("type"));
  if (type == "text") return ResponseFormat{};
  if (type == "json_object") return ResponseFormat{ResponseFormat::Kind::kJsonObject, ""};
  if (type == "json_schema") return parse_schema_format(*format, "text.format");
  return wrong_value("text.format.type", json_string(type),
                     "\"text\", \"json_object\" or \"json_schema\"");
}

// REQUIRES: model and tool_choice are set. This format has no switch for thinking but the effort.
Status parse_reasoning(const JsonValue& body, ChatRequest& request) {
  LOCKET_TRY(const JsonValue* reasoning, Fields(body, "").optional_object("reasoning"));
  EffortWish effort;
  if (reasoning != nullptr) {
    LOCKET_TRY(effort, parse_effort(*reasoning, "reasoning", "effort"));
  }
  set_thinking(std::nullopt, effort, request);
  return {};
}

Status parse_output(const JsonValue& body, ChatRequest& request) {
  const Fields fields(body, "");
  LOCKET_TRY(request.max_tokens, fields.optional_integer("max_output_tokens", 1, kMaxCount));
  LOCKET_TRY(const auto top_logprobs, fields.optional_integer("top_logprobs", 0, kMaxTopLogprobs));
  request.top_logprobs = top_logprobs.value_or(0);
  request.wants_logprobs = request.top_logprobs > 0;
  request.wants_stream_usage = true;
  return check_token_counts(request);
}

}  // namespace

Result<ChatRequest> parse_responses_request(std::string_view json, const IssuedItems& items) {
  LOCKET_TRY(const JsonValue body, read_request(json, std::span(kOwnFields).first<kReadFields>()));
  ChatRequest request;
  LOCKET_TRY_STATUS(parse_shared_fields(body, request));
  LOCKET_TRY(request.messages, parse_conversation(body, items));
  LOCKET_TRY_STATUS(parse_responses_tools(body, request));
  LOCKET_TRY_STATUS(parse_responses_tool_choice(body, request));
  LOCKET_TRY(request.response_format, parse_text_format(body));
  LOCKET_TRY_STATUS(parse_reasoning(body, request));
  LOCKET_TRY_STATUS(parse_output(body, request));
  LOCKET_TRY(request.user_id, parse_user_id(body, "user"));
  LOCKET_TRY_STATUS(check_messages(request));
  request.unknown_fields = unknown_names(body, kOwnFields);
  return request;
}

}  // namespace locket::chat
