// Reads JSON texts. Pure function, thread-safe.
#pragma once

#include <cstddef>
#include <limits>
#include <span>
#include <string_view>

#include "base/result.h"
#include "chat/json_value.h"

namespace locket::chat {

// What one document may hold.
struct JsonLimits {
  int levels = 512;
  std::size_t values = std::numeric_limits<std::size_t>::max();
  // If not empty: the members of the outermost object that are wanted. The values of all others are
  // checked, but neither built nor counted; they read as null. Must outlive the call.
  std::span<const std::string_view> wanted = {};
};

// For bodies and other texts that a client sends.
inline constexpr JsonLimits kRequestLimits = {128, 1'000'000, {}};

// Reads one JSON document. kBadRequest names `what`, the problem, its byte offset and the field:
// broken syntax, an unknown escape, half of a surrogate pair, bytes that are not UTF-8, a number
// beyond double, a limit that was passed.
[[nodiscard]] Result<JsonValue> read_json(std::string_view text, std::string_view what,
                                          const JsonLimits& limits = {});

}  // namespace locket::chat
