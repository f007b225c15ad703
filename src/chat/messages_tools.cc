#include "chat/messages_tools.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "chat/json_fields.h"
#include "chat/request_tools.h"

namespace locket::chat {
namespace {

constexpr FunctionForm kForm = {"input_schema", 128};

// Beginnings of the types of tools that a service runs; a date follows.
constexpr std::array<std::string_view, 5> kServerTools = {
    "web_search", "web_fetch", "code_execution", "tool_search_tool", "mcp_toolset"};

bool is_server_tool(std::string_view type) {
  return std::any_of(kServerTools.begin(), kServerTools.end(),
                     [type](std::string_view start) { return type.starts_with(start); });
}

Status add_tool(const JsonValue& value, std::string_view path, MessagesTools& tools) {
  if (!value.is_object()) return wrong_value(path, value, "an object");
  const Fields fields(value, path);
  LOCKET_TRY(const auto named_type, fields.optional_string("type"));
  const std::string type = named_type.value_or("custom");
  if (is_server_tool(type)) return {};
  if (type != "custom") {
    return wrong_value(fields.path_of("type"), json_string(type),
                       "\"custom\", with an input_schema");
  }
  LOCKET_TRY(Tool tool, parse_function(value, path, kForm));
  LOCKET_TRY(const auto is_deferred, fields.optional_bool("defer_loading"));
  auto& list = is_deferred.value_or(false) ? tools.deferred : tools.shown;
  list.push_back(std::move(tool));
  return {};
}

}  // namespace

Result<MessagesTools> parse_messages_tools(const JsonValue& body) {
  MessagesTools tools;
  LOCKET_TRY(const JsonValue* list, Fields(body, "").optional_array("tools"));
  if (list == nullptr) return tools;
  for (std::size_t index = 0; index < list->items.size(); ++index) {
    LOCKET_TRY_STATUS(add_tool(list->items[index], item_path("tools", index), tools));
  }
  if (tools.shown.empty() && !tools.deferred.empty()) {
    return fail(ErrorCode::kBadRequest,
                "tools are all marked with defer_loading; at least one must be without");
  }
  LOCKET_TRY_STATUS(check_tools(tools.shown));
  return tools;
}

Result<ToolChoice> parse_messages_tool_choice(const JsonValue& body, ThinkingSwitch thinking) {
  LOCKET_TRY(const JsonValue* value, Fields(body, "").optional_object("tool_choice"));
  if (value == nullptr) return ToolChoice{};
  const Fields fields(*value, "tool_choice");
  LOCKET_TRY(const std::string kind, fields.required_string("type"));
  const std::string_view type = kind;
  if (type == "auto") return ToolChoice{};
  if (type == "none") return ToolChoice{ToolChoice::Kind::kNone, ""};
  if (type == "any") {
    if (thinking == ThinkingSwitch::kOn) return ToolChoice{};
    return ToolChoice{ToolChoice::Kind::kRequired, ""};
  }
  if (type != "tool") {
    return wrong_value("tool_choice.type", json_string(kind),
                       "\"auto\", \"any\", \"tool\" or \"none\"");
  }
  LOCKET_TRY(std::string name, fields.required_string("name"));
  return ToolChoice{ToolChoice::Kind::kNamed, std::move(name)};
}

}  // namespace locket::chat
