// "tools", "tool_choice" and "response_format" of a chat request, and the parts of them that other
// formats share. All functions return kBadRequest with the field, the value and what would be
// right. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/json_value.h"
#include "chat/message.h"

namespace locket::chat {

inline constexpr std::size_t kMaxTools = 128;

// An empty or null list of tools is the same as none.
[[nodiscard]] Result<std::vector<Tool>> parse_tools(const JsonValue& body);
[[nodiscard]] Result<ToolChoice> parse_tool_choice(const JsonValue& body);
// From "response_format", else from "structured_outputs" or "guided_json"; kUnsupported for other
// ways to guide the answer.
[[nodiscard]] Result<ResponseFormat> parse_response_format(const JsonValue& body);

// How a format writes a function.
struct FunctionForm {
  std::string_view parameters = "parameters";  // the name of its schema
  std::size_t max_name_bytes = 64;
};

// An object with a name, and perhaps a description, a schema and "strict", which has the schema
// checked and normalised.
[[nodiscard]] Result<Tool> parse_function(const JsonValue& function, std::string_view path,
                                          const FunctionForm& form);

// Letters, digits, '_' and '-' under "name".
[[nodiscard]] Result<std::string> parse_tool_name(const JsonValue& object, std::string_view path,
                                                  std::size_t max_bytes);

// An object with "schema", and perhaps "strict".
[[nodiscard]] Result<ResponseFormat> parse_schema_format(const JsonValue& holder,
                                                         std::string_view path);

// At most kMaxTools, no name twice.
[[nodiscard]] Status check_tools(const std::vector<Tool>& tools);

}  // namespace locket::chat
