// Whether two JSON texts mean the same: the order of keys, spacing and escapes do not count, and a
// number is its value however it was written (2, 2.0, 2e0). Integers are compared exactly, all
// digits of them. Pure functions, thread-safe.
#pragma once

#include <string_view>

#include "chat/json_value.h"

namespace locket::chat {

bool is_same_json(const JsonValue& a, const JsonValue& b);

// The same of the arguments of two calls. Texts that are not JSON mean the same only if they are
// the same bytes.
bool is_same_arguments(std::string_view a, std::string_view b);

}  // namespace locket::chat
