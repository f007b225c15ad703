// Reads JSON texts. Pure function, thread-safe.
#pragma once

#include <string_view>

#include "base/result.h"
#include "chat/json_value.h"

namespace locket::chat {

// Reads one JSON document. kBadRequest names `what`, the problem, its byte offset and the field:
// broken syntax, an unknown escape, half of a surrogate pair, bytes that are not UTF-8, a number
// beyond double, more than 512 levels.
[[nodiscard]] Result<JsonValue> read_json(std::string_view text, std::string_view what);

}  // namespace locket::chat
