// "tools", "tool_choice" and "response_format" of a chat request. Pure functions, thread-safe.
#pragma once

#include <vector>

#include "base/result.h"
#include "chat/json_value.h"
#include "chat/message.h"

namespace locket::chat {

// All return kBadRequest with the field, the value and what would be right. An empty or null list
// of tools is the same as none.
[[nodiscard]] Result<std::vector<Tool>> parse_tools(const JsonValue& body);
[[nodiscard]] Result<ToolChoice> parse_tool_choice(const JsonValue& body);
[[nodiscard]] Result<ResponseFormat> parse_response_format(const JsonValue& body);

}  // namespace locket::chat
