// Fields that requests of several formats share. Every refusal is a kBadRequest that names the
// field, the value found and what would be right. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/json_value.h"
#include "chat/message.h"

namespace locket::chat {

inline constexpr std::size_t kMaxMessages = 20'000;

// The body as an object, within kRequestLimits. `wanted`: names that are kept beside
// those that formats share, the values of others are skipped; none: all are kept.
[[nodiscard]] Result<JsonValue> read_request(std::string_view json,
                                             std::span<const std::string_view> wanted = {});

// Model, sampling, what ends an answer beside stop strings, "stream" and cache_salt.
[[nodiscard]] Status parse_shared_fields(const JsonValue& body, ChatRequest& request);

// "n" and "stream_options", of the formats that have them.
[[nodiscard]] Status parse_choices(const JsonValue& body, ChatRequest& request);

// REQUIRES: max_tokens and min_tokens are set.
[[nodiscard]] Status check_token_counts(const ChatRequest& request);

// Stop strings under `name`: one, or a list of at most kMaxStopStrings, none empty.
[[nodiscard]] Result<std::vector<std::string>> parse_stop(const JsonValue& body,
                                                          std::string_view name);

// A user's id under `name`; empty if there is none.
[[nodiscard]] Result<std::string> parse_user_id(const JsonValue& body, std::string_view name);

struct EffortWish {
  bool is_none = false;       // the name "none"
  std::optional<int> effort;  // 1 .. 100
};

// A name, "none", or an integer from 1 to 100 under `name` in the object at `path`.
[[nodiscard]] Result<EffortWish> parse_effort(const JsonValue& object, std::string_view path,
                                              std::string_view name);

// Whether "thinking" switches thinking on or off.
struct ThinkingWish {
  std::optional<bool> is_on;  // "adaptive" counts as on
  bool is_adaptive = false;
};
[[nodiscard]] Result<ThinkingWish> parse_thinking_wish(const JsonValue& body);

// Sets effort and mode. A forced call, the effort "none" and the model's name count where `is_on`
// says nothing; of them the first that says something. REQUIRES: model and tool_choice are set.
void set_thinking(std::optional<bool> is_on, const EffortWish& effort, ChatRequest& request);

// Whether "messages" or "input" has no more than kMaxMessages entries.
[[nodiscard]] Status check_list_length(const JsonValue& list, std::string_view path);

// The names in `body` that are neither shared by formats nor `own`, at most 32 of them.
std::vector<std::string> unknown_names(const JsonValue& body,
                                       std::span<const std::string_view> own);

}  // namespace locket::chat
