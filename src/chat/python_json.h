// JSON text as Python's json.dumps(ensure_ascii=False) writes it, the form that prompts of the V4.1
// generation hold: separators ", " and ": ", the client's key order, characters unescaped, floats
// in Python's repr, integers with the client's digits. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "chat/json_value.h"

namespace locket::chat {

std::string python_json(const JsonValue& value);

// Appends `text` with JSON's escapes, without quotes around it: \" \\ \n \r \t \b \f, and \u00xx
// for the other control characters. Bytes above 0x7e pass as they are, so text may come in any
// pieces.
void append_escaped(std::string_view text, std::string& out);

}  // namespace locket::chat
