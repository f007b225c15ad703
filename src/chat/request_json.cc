#include "chat/request_json.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "chat/check_messages.h"
#include "chat/json_fields.h"
#include "chat/json_number.h"
#include "chat/json_reader.h"
#include "chat/json_value.h"
#include "chat/request_messages.h"
#include "chat/request_tools.h"

namespace locket::chat {
namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxCompletions = 128;
constexpr std::int64_t kMaxTopLogprobs = 20;
constexpr std::int64_t kMaxToken = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxBiases = 1024;

constexpr std::array<std::pair<std::string_view, int>, 7> kEfforts = {{{"minimal", 50},
                                                                       {"low", 50},
                                                                       {"medium", 75},
                                                                       {"high", 75},
                                                                       {"xhigh", 75},
                                                                       {"max", 100},
                                                                       {"ultra", 100}}};

// Every name of the body that something reads, or that is known to mean nothing here.
constexpr std::array<std::string_view, 33> kKnownFields = {"model",
                                                           "messages",
                                                           "tools",
                                                           "tool_choice",
                                                           "response_format",
                                                           "thinking",
                                                           "reasoning_effort",
                                                           "chat_template_kwargs",
                                                           "drop_thinking",
                                                           "stop",
                                                           "temperature",
                                                           "top_p",
                                                           "min_p",
                                                           "top_k",
                                                           "seed",
                                                           "frequency_penalty",
                                                           "presence_penalty",
                                                           "repetition_penalty",
                                                           "logit_bias",
                                                           "max_tokens",
                                                           "max_completion_tokens",
                                                           "n",
                                                           "ignore_eos",
                                                           "logprobs",
                                                           "top_logprobs",
                                                           "stream",
                                                           "stream_options",
                                                           "user_id",
                                                           "user",
                                                           "service_tier",
                                                           "store",
                                                           "metadata",
                                                           "parallel_tool_calls"};

struct EffortWish {
  bool is_none = false;       // the name "none"
  std::optional<int> effort;  // 1 .. 100
};

Result<EffortWish> parse_effort(const JsonValue& object, std::string_view path) {
  EffortWish wish;
  const JsonValue* value = find_present(object, "reasoning_effort");
  if (value == nullptr) return wish;
  if (value->is_string() && value->text == "none") {
    wish.is_none = true;
    return wish;
  }
  if (value->is_string()) {
    LOCKET_TRY(wish.effort, effort_of_name(value->text));
    return wish;
  }
  std::optional<std::int64_t> number;
  if (value->kind == JsonValue::Kind::kInteger) number = read_int64(value->text);
  if (!number || *number < 1 || *number > 100) {
    return wrong_value(field_path(path, "reasoning_effort"), *value,
                       "a name such as \"low\", \"high\" or \"max\", or an integer from 1 to 100");
  }
  wish.effort = static_cast<int>(*number);
  return wish;
}

// Whether the request itself switches thinking on or off.
Result<std::optional<bool>> parse_thinking_switch(const JsonValue& body) {
  LOCKET_TRY(const JsonValue* value, Fields(body, "").optional_object("thinking"));
  if (value == nullptr) return std::optional<bool>();
  LOCKET_TRY(const std::string type, Fields(*value, "thinking").required_string("type"));
  if (type == "enabled" || type == "adaptive") return std::optional(true);
  if (type == "disabled") return std::optional(false);
  return wrong_value("thinking.type", json_string(type),
                     "\"enabled\", \"disabled\" or \"adaptive\"");
}

Status parse_old_reasoning(const JsonValue& object, std::string_view path, ChatRequest& request) {
  LOCKET_TRY(const auto drop, Fields(object, path).optional_bool("drop_thinking"));
  if (drop && !*drop) request.old_reasoning = OldReasoning::kKeepAlways;
  return {};
}

// REQUIRES: tool_choice is set. A forced call switches thinking off unless the request itself asked
// for it: clients that want structured output force a call and do not know of thinking.
Status parse_thinking(const JsonValue& body, ChatRequest& request) {
  LOCKET_TRY(std::optional<bool> wanted, parse_thinking_switch(body));
  LOCKET_TRY(EffortWish effort, parse_effort(body, ""));
  LOCKET_TRY_STATUS(parse_old_reasoning(body, "", request));
  constexpr std::string_view kExtra = "chat_template_kwargs";
  LOCKET_TRY(const JsonValue* extra, Fields(body, "").optional_object(kExtra));
  if (extra != nullptr) {
    const Fields fields(*extra, kExtra);
    LOCKET_TRY(const auto thinking, fields.optional_bool("thinking"));
    LOCKET_TRY(const auto enable_thinking, fields.optional_bool("enable_thinking"));
    LOCKET_TRY(const EffortWish extra_effort, parse_effort(*extra, kExtra));
    LOCKET_TRY_STATUS(parse_old_reasoning(*extra, kExtra, request));
    if (!wanted) wanted = thinking ? thinking : enable_thinking;
    if (!effort.effort && !effort.is_none) effort = extra_effort;
  }
  request.effort = effort.effort.value_or(kDefaultEffort);
  const bool is_off_by_default = effort.is_none || has_forced_call(request);
  request.thinking =
      wanted.value_or(!is_off_by_default) ? ThinkingMode::kThinking : ThinkingMode::kChat;
  return {};
}

Status parse_stop(const JsonValue& body, ChatRequest& request) {
  constexpr std::string_view kWanted = "a string that is not empty, or a list of such strings";
  const JsonValue* value = find_present(body, "stop");
  if (value == nullptr) return {};
  if (!value->is_string() && !value->is_array()) return wrong_value("stop", *value, kWanted);
  if (value->items.size() > kMaxStopStrings) {
    return fail(ErrorCode::kBadRequest, fmt::format("stop has {} strings; at most {} are allowed",
                                                    value->items.size(), kMaxStopStrings));
  }
  if (value->is_string()) request.stop.push_back(value->text);
  for (std::size_t index = 0; index < value->items.size(); ++index) {
    const JsonValue& item = value->items[index];
    if (!item.is_string()) return wrong_value(item_path("stop", index), item, kWanted);
    request.stop.push_back(item.text);
  }
  for (const std::string& text : request.stop) {
    if (text.empty()) return wrong_value("stop", *value, kWanted);
  }
  return {};
}

Result<std::optional<std::uint64_t>> parse_seed(const JsonValue& body) {
  const JsonValue* value = find_present(body, "seed");
  if (value == nullptr) return std::optional<std::uint64_t>();
  std::optional<std::uint64_t> seed;
  if (value->kind == JsonValue::Kind::kInteger) {
    seed = read_uint64(value->text);
    const std::optional<std::int64_t> negative = read_int64(value->text);
    if (!seed && negative) seed = static_cast<std::uint64_t>(*negative);
  }
  if (!seed) return wrong_value("seed", *value, "an integer of at most 64 bits");
  return seed;
}

Result<std::vector<LogitBias>> parse_logit_bias(const JsonValue& body) {
  std::vector<LogitBias> biases;
  LOCKET_TRY(const JsonValue* value, Fields(body, "").optional_object("logit_bias"));
  if (value == nullptr) return biases;
  if (value->members.size() > kMaxBiases) {
    return fail(ErrorCode::kBadRequest, fmt::format("logit_bias has {} entries; at most {} are "
                                                    "allowed",
                                                    value->members.size(), kMaxBiases));
  }
  for (const JsonMember& member : value->members) {
    const std::optional<std::int64_t> token = read_int64(member.name);
    if (!token || *token < 0 || *token > kMaxToken) {
      return fail(
          ErrorCode::kBadRequest,
          fmt::format("logit_bias has the name \"{}\"; names must be token ids", member.name));
    }
    LOCKET_TRY(const auto bias,
               Fields(*value, "logit_bias").optional_number(member.name, -100.0, 100.0));
    biases.push_back({static_cast<std::int32_t>(*token), bias.value_or(0.0)});
  }
  return biases;
}

Status parse_sampling(const JsonValue& body, SamplingWishes& wishes) {
  const Fields fields(body, "");
  LOCKET_TRY(wishes.temperature, fields.optional_number("temperature", 0.0, 2.0));
  LOCKET_TRY(wishes.top_p, fields.optional_number("top_p", 0.0, 1.0));
  LOCKET_TRY(wishes.min_p, fields.optional_number("min_p", 0.0, 1.0));
  LOCKET_TRY(wishes.frequency_penalty, fields.optional_number("frequency_penalty", -2.0, 2.0));
  LOCKET_TRY(wishes.presence_penalty, fields.optional_number("presence_penalty", -2.0, 2.0));
  LOCKET_TRY(wishes.repetition_penalty, fields.optional_number("repetition_penalty", 0.01, 10.0));
  // Both -1 and 0 are in use for "off".
  LOCKET_TRY(wishes.top_k, fields.optional_integer("top_k", -1, kMaxToken));
  if (wishes.top_k) wishes.top_k = std::max<std::int64_t>(*wishes.top_k, 0);
  LOCKET_TRY(wishes.seed, parse_seed(body));
  LOCKET_TRY(wishes.logit_bias, parse_logit_bias(body));
  return {};
}

Status parse_output(const JsonValue& body, ChatRequest& request) {
  const Fields fields(body, "");
  LOCKET_TRY(const auto max_tokens, fields.optional_integer("max_tokens", 1, kMaxCount));
  LOCKET_TRY(request.max_tokens, fields.optional_integer("max_completion_tokens", 1, kMaxCount));
  if (!request.max_tokens) request.max_tokens = max_tokens;
  LOCKET_TRY(const auto n, fields.optional_integer("n", 1, kMaxCompletions));
  request.n = n.value_or(1);
  LOCKET_TRY(const auto ignore_eos, fields.optional_bool("ignore_eos"));
  request.ignore_eos = ignore_eos.value_or(false);
  LOCKET_TRY(const auto logprobs, fields.optional_bool("logprobs"));
  request.wants_logprobs = logprobs.value_or(false);
  LOCKET_TRY(const auto top_logprobs, fields.optional_integer("top_logprobs", 0, kMaxTopLogprobs));
  request.top_logprobs = top_logprobs.value_or(0);
  if (request.top_logprobs > 0 && !request.wants_logprobs) {
    return fail(ErrorCode::kBadRequest, "top_logprobs is set; logprobs must be true with it");
  }
  LOCKET_TRY(const auto stream, fields.optional_bool("stream"));
  request.is_stream = stream.value_or(false);
  LOCKET_TRY(const JsonValue* options, fields.optional_object("stream_options"));
  if (options != nullptr) {
    LOCKET_TRY(const auto usage, Fields(*options, "stream_options").optional_bool("include_usage"));
    request.wants_stream_usage = usage.value_or(false);
  }
  return {};
}

Status parse_user(const JsonValue& body, ChatRequest& request) {
  constexpr std::size_t kMaxUserBytes = 512;
  const Fields fields(body, "");
  LOCKET_TRY(const auto user_id, fields.optional_string("user_id"));
  request.user_id = user_id.value_or("");
  if (request.user_id.size() > kMaxUserBytes) {
    return fail(ErrorCode::kBadRequest, fmt::format("user_id has {} bytes; at most {} are allowed",
                                                    request.user_id.size(), kMaxUserBytes));
  }
  return {};
}

void list_unknown_fields(const JsonValue& body, ChatRequest& request) {
  for (const JsonMember& member : body.members) {
    if (std::find(kKnownFields.begin(), kKnownFields.end(), member.name) == kKnownFields.end()) {
      request.unknown_fields.push_back(member.name);
    }
  }
}

}  // namespace

Result<int> effort_of_name(std::string_view name) {
  std::string known;
  for (const auto& [effort_name, effort] : kEfforts) {
    if (name == effort_name) return effort;
    known += fmt::format(" {}", effort_name);
  }
  return fail(
      ErrorCode::kBadRequest,
      fmt::format("reasoning_effort is \"{}\"; it must be one of none{}, or an integer from "
                  "1 to 100",
                  name, known));
}

Result<ChatRequest> parse_chat_request(std::string_view json) {
  LOCKET_TRY(const JsonValue body, read_json(json, "the body"));
  if (!body.is_object()) return wrong_value("the body", body, "an object");
  ChatRequest request;
  LOCKET_TRY(const auto model, Fields(body, "").optional_string("model"));
  request.model = model.value_or("");
  LOCKET_TRY(request.messages, parse_messages(body));
  LOCKET_TRY(request.tools, parse_tools(body));
  LOCKET_TRY(request.tool_choice, parse_tool_choice(body));
  LOCKET_TRY(request.response_format, parse_response_format(body));
  LOCKET_TRY_STATUS(parse_thinking(body, request));
  LOCKET_TRY_STATUS(parse_stop(body, request));
  LOCKET_TRY_STATUS(parse_sampling(body, request.sampling));
  LOCKET_TRY_STATUS(parse_output(body, request));
  LOCKET_TRY_STATUS(parse_user(body, request));
  LOCKET_TRY_STATUS(check_messages(request));
  list_unknown_fields(body, request);
  return request;
}

}  // namespace locket::chat
