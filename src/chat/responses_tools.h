// "tools" and "tool_choice" of the Responses format. Functions may stand in namespaces, whose tools
// the model sees under flat names; a custom tool "apply_patch" is shown as a function with one
// text; tools that a hosted service runs itself (web search and the like) are left out. Pure
// functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/json_value.h"
#include "chat/message.h"

namespace locket::chat {

inline constexpr std::string_view kPatchTool = "apply_patch";

// The name under which the model sees `name` of `name_space`; an empty namespace is none.
std::string flat_tool_name(std::string_view name_space, std::string_view name);

// Sets tools, namespaces and has_patch_tool. kBadRequest names the tool: two of one name, a
// namespace in a namespace, a custom tool of another name.
[[nodiscard]] Status parse_responses_tools(const JsonValue& body, ChatRequest& request);

// Sets tool_choice; a list of allowed tools takes the others out of the request. REQUIRES: tools
// are set.
[[nodiscard]] Status parse_responses_tool_choice(const JsonValue& body, ChatRequest& request);

}  // namespace locket::chat
