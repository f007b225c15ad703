// "tools" and "tool_choice" of the Messages format. Tools that a hosted service runs itself are
// left out. Pure functions, thread-safe.
#pragma once

#include <vector>

#include "base/result.h"
#include "chat/json_value.h"
#include "chat/message.h"

namespace locket::chat {

struct MessagesTools {
  std::vector<Tool> shown;
  // Marked with defer_loading: not shown until a result names them.
  std::vector<Tool> deferred;
};

// kBadRequest names the tool and the field; it is one if all tools are deferred.
[[nodiscard]] Result<MessagesTools> parse_messages_tools(const JsonValue& body);

// "any" is a choice only while the request does not switch thinking on: it is no error then, and
// forces nothing.
enum class ThinkingSwitch { kOn, kNotOn, kCount };
[[nodiscard]] Result<ToolChoice> parse_messages_tool_choice(const JsonValue& body,
                                                            ThinkingSwitch thinking);

}  // namespace locket::chat
