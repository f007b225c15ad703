#include "chat/request_json.h"

#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "chat/check_messages.h"
#include "chat/json_fields.h"
#include "chat/json_value.h"
#include "chat/request_fields.h"
#include "chat/request_messages.h"
#include "chat/request_tools.h"

namespace locket::chat {
namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxTopLogprobs = 20;

constexpr std::array<std::pair<std::string_view, int>, 7> kEfforts = {{{"minimal", 50},
                                                                       {"low", 50},
                                                                       {"medium", 75},
                                                                       {"high", 75},
                                                                       {"xhigh", 75},
                                                                       {"max", 100},
                                                                       {"ultra", 100}}};

// What this format has beside those that formats share, read or known to mean nothing here.
constexpr std::array<std::string_view, 28> kOwnFields = {"messages",
                                                         "tools",
                                                         "tool_choice",
                                                         "response_format",
                                                         "thinking",
                                                         "reasoning_effort",
                                                         "chat_template_kwargs",
                                                         "drop_thinking",
                                                         "stop",
                                                         "max_tokens",
                                                         "max_completion_tokens",
                                                         "n",
                                                         "logprobs",
                                                         "top_logprobs",
                                                         "stream_options",
                                                         "user_id",
                                                         "user",
                                                         "structured_outputs",
                                                         "guided_json",
                                                         "guided_regex",
                                                         "guided_choice",
                                                         "guided_grammar",
                                                         "safety_identifier",
                                                         "prompt_cache_key",
                                                         "prompt_cache_retention",
                                                         "verbosity",
                                                         "modalities",
                                                         "prediction"};

Status parse_old_reasoning(const JsonValue& object, std::string_view path, ChatRequest& request) {
  LOCKET_TRY(const auto drop, Fields(object, path).optional_bool("drop_thinking"));
  if (drop && !*drop) request.old_reasoning = OldReasoning::kKeepAlways;
  return {};
}

// REQUIRES: model and tool_choice are set.
Status parse_thinking(const JsonValue& body, ChatRequest& request) {
  constexpr std::string_view kEffort = "reasoning_effort";
  constexpr std::string_view kExtra = "chat_template_kwargs";
  LOCKET_TRY(const ThinkingWish wish, parse_thinking_wish(body));
  LOCKET_TRY(EffortWish effort, parse_effort(body, "", kEffort));
  LOCKET_TRY_STATUS(parse_old_reasoning(body, "", request));
  LOCKET_TRY(const JsonValue* extra, Fields(body, "").optional_object(kExtra));
  std::optional<bool> is_on = wish.is_on;
  if (extra != nullptr) {
    const Fields fields(*extra, kExtra);
    LOCKET_TRY(const auto thinking, fields.optional_bool("thinking"));
    LOCKET_TRY(const auto enable_thinking, fields.optional_bool("enable_thinking"));
    LOCKET_TRY(const EffortWish extra_effort, parse_effort(*extra, kExtra, kEffort));
    LOCKET_TRY_STATUS(parse_old_reasoning(*extra, kExtra, request));
    if (!is_on) is_on = thinking ? thinking : enable_thinking;
    if (!effort.effort && !effort.is_none) effort = extra_effort;
  }
  set_thinking(is_on, effort, request);
  return {};
}

Status parse_output(const JsonValue& body, ChatRequest& request) {
  const Fields fields(body, "");
  LOCKET_TRY(const auto max_tokens, fields.optional_integer("max_tokens", 1, kMaxCount));
  LOCKET_TRY(request.max_tokens, fields.optional_integer("max_completion_tokens", 1, kMaxCount));
  if (!request.max_tokens) request.max_tokens = max_tokens;
  LOCKET_TRY(const auto logprobs, fields.optional_bool("logprobs"));
  request.wants_logprobs = logprobs.value_or(false);
  LOCKET_TRY(const auto top_logprobs, fields.optional_integer("top_logprobs", 0, kMaxTopLogprobs));
  request.top_logprobs = top_logprobs.value_or(0);
  if (request.top_logprobs > 0 && !request.wants_logprobs) {
    return fail(ErrorCode::kBadRequest, "top_logprobs is set; logprobs must be true with it");
  }
  return check_token_counts(request);
}

}  // namespace

Result<int> effort_of_name(std::string_view name, std::string_view field) {
  std::string known;
  for (const auto& [effort_name, effort] : kEfforts) {
    if (name == effort_name) return effort;
    known += fmt::format(" {}", effort_name);
  }
  return wrong_value(field, json_string(std::string(name)),
                     fmt::format("one of none{}, or an integer from 1 to 100", known));
}

Result<ChatRequest> parse_chat_request(std::string_view json) {
  LOCKET_TRY(const JsonValue body, read_request(json, kOwnFields));
  ChatRequest request;
  LOCKET_TRY_STATUS(parse_shared_fields(body, request));
  LOCKET_TRY(request.messages, parse_messages(body));
  LOCKET_TRY(request.tools, parse_tools(body));
  LOCKET_TRY(request.tool_choice, parse_tool_choice(body));
  LOCKET_TRY(request.response_format, parse_response_format(body));
  LOCKET_TRY_STATUS(parse_thinking(body, request));
  LOCKET_TRY(request.stop, parse_stop(body, "stop"));
  LOCKET_TRY_STATUS(parse_choices(body, request));
  LOCKET_TRY_STATUS(parse_output(body, request));
  LOCKET_TRY(request.user_id, parse_user_id(body, "user_id"));
  LOCKET_TRY_STATUS(check_messages(request));
  request.unknown_fields = unknown_names(body, kOwnFields);
  return request;
}

}  // namespace locket::chat
