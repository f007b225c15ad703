#include "chat/request_fields.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "chat/json_fields.h"
#include "chat/json_number.h"
#include "chat/json_reader.h"
#include "chat/model_names.h"
#include "chat/request_json.h"

namespace locket::chat {
namespace {

constexpr std::int64_t kMaxCount = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMaxChoices = 128;
constexpr std::int64_t kMaxToken = std::numeric_limits<std::int32_t>::max();
constexpr std::size_t kMaxBiases = 1024;
constexpr std::size_t kMaxStopTokens = 128;
constexpr std::size_t kMaxSaltBytes = 128;
constexpr std::size_t kMaxUserBytes = 512;
constexpr std::size_t kMaxListedNames = 32;
constexpr std::size_t kMaxListedBytes = 64;

// What every format reads, or knows to mean nothing.
constexpr std::array<std::string_view, 21> kSharedNames = {"model",
                                                           "temperature",
                                                           "top_p",
                                                           "min_p",
                                                           "top_k",
                                                           "seed",
                                                           "frequency_penalty",
                                                           "presence_penalty",
                                                           "repetition_penalty",
                                                           "logit_bias",
                                                           "ignore_eos",
                                                           "min_tokens",
                                                           "stop_token_ids",
                                                           "include_stop_str_in_output",
                                                           "stream",
                                                           "cache_salt",
                                                           "skip_special_tokens",
                                                           "service_tier",
                                                           "store",
                                                           "metadata",
                                                           "parallel_tool_calls"};

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

Result<std::vector<std::int32_t>> parse_stop_tokens(const JsonValue& body) {
  constexpr std::string_view kName = "stop_token_ids";
  std::vector<std::int32_t> tokens;
  LOCKET_TRY(const JsonValue* list, Fields(body, "").optional_array(kName));
  if (list == nullptr) return tokens;
  if (list->items.size() > kMaxStopTokens) {
    return fail(ErrorCode::kBadRequest, fmt::format("{} has {} entries; at most {} are allowed",
                                                    kName, list->items.size(), kMaxStopTokens));
  }
  for (std::size_t index = 0; index < list->items.size(); ++index) {
    const JsonValue& item = list->items[index];
    std::optional<std::int64_t> token;
    if (item.kind == JsonValue::Kind::kInteger) token = read_int64(item.text);
    if (!token || *token < 0 || *token > kMaxToken) {
      return wrong_value(item_path(kName, index), item, "a token id");
    }
    tokens.push_back(static_cast<std::int32_t>(*token));
  }
  return tokens;
}

Status parse_ends(const JsonValue& body, ChatRequest& request) {
  const Fields fields(body, "");
  LOCKET_TRY(const auto ignore_eos, fields.optional_bool("ignore_eos"));
  request.ignore_eos = ignore_eos.value_or(false);
  LOCKET_TRY(const auto min_tokens, fields.optional_integer("min_tokens", 0, kMaxCount));
  request.min_tokens = min_tokens.value_or(0);
  LOCKET_TRY(request.stop_tokens, parse_stop_tokens(body));
  LOCKET_TRY(const auto keeps_stop, fields.optional_bool("include_stop_str_in_output"));
  request.keeps_stop_text = keeps_stop.value_or(false);
  return {};
}

bool is_salt_character(char byte) { return byte > ' ' && byte <= '~'; }

Result<std::string> parse_cache_salt(const JsonValue& body) {
  LOCKET_TRY(const auto salt, Fields(body, "").optional_string("cache_salt"));
  if (!salt) return std::string();
  if (salt->empty() || salt->size() > kMaxSaltBytes ||
      !std::all_of(salt->begin(), salt->end(), is_salt_character)) {
    return wrong_value("cache_salt", json_string(*salt),
                       fmt::format("1 to {} ASCII characters without spaces", kMaxSaltBytes));
  }
  return *salt;
}

bool is_user_character(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '_' || byte == '-';
}

bool has_name(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

Result<JsonValue> read_request(std::string_view json, std::span<const std::string_view> wanted) {
  std::vector<std::string_view> all(wanted.begin(), wanted.end());
  if (!wanted.empty()) all.insert(all.end(), kSharedNames.begin(), kSharedNames.end());
  JsonLimits limits = kRequestLimits;
  limits.wanted = all;
  LOCKET_TRY(JsonValue body, read_json(json, "the body", limits));
  if (!body.is_object()) return wrong_value("the body", body, "an object");
  return body;
}

Status parse_shared_fields(const JsonValue& body, ChatRequest& request) {
  const Fields fields(body, "");
  LOCKET_TRY(const auto model, fields.optional_string("model"));
  request.model = model.value_or("");
  LOCKET_TRY_STATUS(parse_sampling(body, request.sampling));
  LOCKET_TRY_STATUS(parse_ends(body, request));
  LOCKET_TRY(const auto stream, fields.optional_bool("stream"));
  request.is_stream = stream.value_or(false);
  LOCKET_TRY(request.cache_salt, parse_cache_salt(body));
  return {};
}

Status parse_choices(const JsonValue& body, ChatRequest& request) {
  const Fields fields(body, "");
  LOCKET_TRY(const auto n, fields.optional_integer("n", 1, kMaxChoices));
  request.n = n.value_or(1);
  LOCKET_TRY(const JsonValue* options, fields.optional_object("stream_options"));
  if (options == nullptr) return {};
  LOCKET_TRY(const auto usage, Fields(*options, "stream_options").optional_bool("include_usage"));
  request.wants_stream_usage = usage.value_or(false);
  return {};
}

Status check_token_counts(const ChatRequest& request) {
  if (!request.max_tokens || request.min_tokens <= *request.max_tokens) return {};
  return fail(
      ErrorCode::kBadRequest,
      fmt::format("min_tokens is {}; it must not be above the {} tokens that the answer may "
                  "have",
                  request.min_tokens, *request.max_tokens));
}

Result<std::vector<std::string>> parse_stop(const JsonValue& body, std::string_view name) {
  constexpr std::string_view kWanted = "a string that is not empty, or a list of such strings";
  std::vector<std::string> stop;
  const JsonValue* value = find_present(body, name);
  if (value == nullptr) return stop;
  if (!value->is_string() && !value->is_array()) return wrong_value(name, *value, kWanted);
  if (value->items.size() > kMaxStopStrings) {
    return fail(ErrorCode::kBadRequest, fmt::format("{} has {} strings; at most {} are allowed",
                                                    name, value->items.size(), kMaxStopStrings));
  }
  if (value->is_string()) stop.push_back(value->text);
  for (std::size_t index = 0; index < value->items.size(); ++index) {
    const JsonValue& item = value->items[index];
    if (!item.is_string()) return wrong_value(item_path(name, index), item, kWanted);
    stop.push_back(item.text);
  }
  for (const std::string& text : stop) {
    if (text.empty()) return wrong_value(name, *value, kWanted);
  }
  return stop;
}

Result<std::string> parse_user_id(const JsonValue& body, std::string_view name) {
  LOCKET_TRY(const auto user_id, Fields(body, "").optional_string(name));
  if (!user_id) return std::string();
  if (user_id->empty() || user_id->size() > kMaxUserBytes ||
      !std::all_of(user_id->begin(), user_id->end(), is_user_character)) {
    return wrong_value(name, json_string(*user_id),
                       fmt::format("1 to {} letters, digits, '_' or '-'", kMaxUserBytes));
  }
  return *user_id;
}

Result<EffortWish> parse_effort(const JsonValue& object, std::string_view path,
                                std::string_view name) {
  EffortWish wish;
  const JsonValue* value = find_present(object, name);
  if (value == nullptr) return wish;
  const std::string field = field_path(path, name);
  if (value->is_string() && value->text == "none") {
    wish.is_none = true;
    return wish;
  }
  if (value->is_string()) {
    LOCKET_TRY(wish.effort, effort_of_name(value->text, field));
    return wish;
  }
  std::optional<std::int64_t> number;
  if (value->kind == JsonValue::Kind::kInteger) number = read_int64(value->text);
  if (!number || *number < 1 || *number > 100) {
    return wrong_value(field, *value,
                       "a name such as \"low\", \"high\" or \"max\", or an integer from 1 to 100");
  }
  wish.effort = static_cast<int>(*number);
  return wish;
}

Result<ThinkingWish> parse_thinking_wish(const JsonValue& body) {
  LOCKET_TRY(const JsonValue* value, Fields(body, "").optional_object("thinking"));
  if (value == nullptr) return ThinkingWish{};
  LOCKET_TRY(const std::string type, Fields(*value, "thinking").required_string("type"));
  if (type == "enabled") return ThinkingWish{true, false};
  if (type == "adaptive") return ThinkingWish{true, true};
  if (type == "disabled") return ThinkingWish{false, false};
  return wrong_value("thinking.type", json_string(type),
                     "\"enabled\", \"disabled\" or \"adaptive\"");
}

void set_thinking(std::optional<bool> is_on, const EffortWish& effort, ChatRequest& request) {
  request.effort = effort.effort.value_or(kDefaultEffort);
  const bool is_off_by_default = effort.is_none || has_forced_call(request) ||
                                 thinking_of_model_name(request.model) == ThinkingMode::kChat;
  request.thinking =
      is_on.value_or(!is_off_by_default) ? ThinkingMode::kThinking : ThinkingMode::kChat;
}

Status check_list_length(const JsonValue& list, std::string_view path) {
  if (list.items.size() <= kMaxMessages) return {};
  return fail(ErrorCode::kBadRequest, fmt::format("{} has {} entries; at most {} are allowed", path,
                                                  list.items.size(), kMaxMessages));
}

std::vector<std::string> unknown_names(const JsonValue& body,
                                       std::span<const std::string_view> own) {
  std::vector<std::string> names;
  for (const JsonMember& member : body.members) {
    if (names.size() == kMaxListedNames) break;
    if (has_name(own, member.name) || has_name(kSharedNames, member.name)) continue;
    if (member.name.size() <= kMaxListedBytes) names.push_back(member.name);
  }
  return names;
}

}  // namespace locket::chat
