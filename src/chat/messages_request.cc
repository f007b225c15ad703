#include "chat/messages_request.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "chat/check_messages.h"
#include "chat/json_fields.h"
#include "chat/json_value.h"
#include "chat/messages_conversation.h"
#include "chat/messages_tools.h"
#include "chat/request_fields.h"
#include "chat/request_tools.h"
#include "chat/volatile_text.h"

namespace locket::chat {
namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();

// What this format has beside those that formats share: first what is read, then what is known to
// mean nothing here. The last two may hold an agent's whole log.
constexpr std::size_t kReadFields = 8;
constexpr std::array<std::string_view, 17> kOwnFields = {
    "system",          "messages",           "tools",          "tool_choice",        "thinking",
    "output_config",   "max_tokens",         "stop_sequences", "context_management", "container",
    "mcp_servers",     "cache_control",      "betas",          "inference_geo",      "speed",
    "dsh_session_log", "dsh_plugin_packages"};

Result<ResponseFormat> parse_format(const JsonValue& config) {
  const Fields fields(config, "output_config");
  LOCKET_TRY(const JsonValue* format, fields.optional_object("format"));
  if (format == nullptr) return ResponseFormat{};
  const std::string path = fields.path_of("format");
  const Fields parts(*format, path);
  LOCKET_TRY(const std::string type, parts.required_string("type"));
  if (type == "json_schema") return parse_schema_format(*format, path);
  return wrong_value(parts.path_of("type"), json_string(type), "\"json_schema\"");
}

// Sets tool_choice, mode, effort and response_format. REQUIRES: the model is set.
Status parse_modes(const JsonValue& body, ChatRequest& request) {
  LOCKET_TRY(const ThinkingWish wish, parse_thinking_wish(body));
  const bool is_on = wish.is_on.value_or(false) && !wish.is_adaptive;
  LOCKET_TRY(request.tool_choice, parse_messages_tool_choice(
                                      body, is_on ? ThinkingSwitch::kOn : ThinkingSwitch::kNotOn));
  EffortWish effort;
  LOCKET_TRY(const JsonValue* config, Fields(body, "").optional_object("output_config"));
  if (config != nullptr) {
    LOCKET_TRY(effort, parse_effort(*config, "output_config", "effort"));
    LOCKET_TRY(request.response_format, parse_format(*config));
  }
  // An adaptive model does not think before a call that is forced.
  const bool gives_way = wish.is_adaptive && has_forced_call(request);
  set_thinking(gives_way ? std::nullopt : wish.is_on, effort, request);
  return {};
}

// Agents put texts of their own here, so that nothing of it is refused.
Result<std::string> parse_metadata_user(const JsonValue& body) {
  LOCKET_TRY(const JsonValue* metadata, Fields(body, "").optional_object("metadata"));
  const JsonValue* user_id = metadata == nullptr ? nullptr : metadata->find("user_id");
  if (user_id == nullptr || !user_id->is_string()) return std::string();
  return stable_user_id(user_id->text);
}

Status parse_output(const JsonValue& body, ChatRequest& request) {
  LOCKET_TRY(request.max_tokens, Fields(body, "").optional_integer("max_tokens", 1, kMaxCount));
  LOCKET_TRY(request.stop, parse_stop(body, "stop_sequences"));
  // The format has it, and the hosted service takes no notice of it.
  request.sampling.top_k.reset();
  request.wants_stream_usage = true;
  return check_token_counts(request);
}

}  // namespace

Result<ChatRequest> parse_messages_request(std::string_view json) {
  LOCKET_TRY(const JsonValue body, read_request(json, std::span(kOwnFields).first<kReadFields>()));
  ChatRequest request;
  LOCKET_TRY_STATUS(parse_shared_fields(body, request));
  LOCKET_TRY(MessagesTools tools, parse_messages_tools(body));
  LOCKET_TRY(request.messages, parse_messages_conversation(body, tools));
  request.tools = std::move(tools.shown);
  LOCKET_TRY_STATUS(parse_modes(body, request));
  LOCKET_TRY_STATUS(parse_output(body, request));
  LOCKET_TRY(request.user_id, parse_metadata_user(body));
  LOCKET_TRY_STATUS(check_messages(request));
  request.unknown_fields = unknown_names(body, kOwnFields);
  return request;
}

}  // namespace locket::chat
