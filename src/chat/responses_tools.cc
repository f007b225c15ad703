#include "chat/responses_tools.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "chat/json_fields.h"
#include "chat/request_tools.h"

namespace locket::chat {
namespace {

constexpr FunctionForm kForm = {"parameters", 128};

constexpr std::string_view kPatchParameters =
    "{\"type\": \"object\", \"properties\": {\"input\": {\"type\": \"string\"}}, \"required\": "
    "[\"input\"], \"additionalProperties\": false}";

Status add_function(const JsonValue& value, std::string_view path, ChatRequest& request) {
  LOCKET_TRY(Tool tool, parse_function(value, path, kForm));
  request.tools.push_back(std::move(tool));
  return {};
}

Status add_custom(const JsonValue& value, std::string_view path, ChatRequest& request) {
  const Fields fields(value, path);
  LOCKET_TRY(const std::string name, fields.required_string("name"));
  if (name != kPatchTool) {
    return wrong_value(fields.path_of("name"), json_string(name),
                       "\"apply_patch\" for a custom tool; offer others as functions");
  }
  LOCKET_TRY(const auto description, fields.optional_string("description"));
  request.tools.push_back({name, description.value_or(""), std::string(kPatchParameters)});
  request.has_patch_tool = true;
  return {};
}

// One tool of a namespace: the namespace's description stands before its own.
Status add_nested(const JsonValue& value, std::string_view path, const Tool& name_space,
                  ChatRequest& request) {
  if (!value.is_object()) return wrong_value(path, value, "an object");
  const Fields fields(value, path);
  LOCKET_TRY(const auto type, fields.optional_string("type"));
  if (type.value_or("function") != "function") {
    return wrong_value(fields.path_of("type"), json_string(*type), "\"function\" in a namespace");
  }
  LOCKET_TRY(Tool tool, parse_function(value, path, kForm));
  const std::string flat = flat_tool_name(name_space.name, tool.name);
  request.namespaces.push_back({flat, name_space.name, std::move(tool.name)});
  tool.name = flat;
  if (!name_space.description.empty()) {
    tool.description = name_space.description + "\n" + tool.description;
  }
  request.tools.push_back(std::move(tool));
  return {};
}

Status add_namespace(const JsonValue& value, std::string_view path, ChatRequest& request) {
  const Fields fields(value, path);
  Tool name_space;
  LOCKET_TRY(name_space.name, parse_tool_name(value, path, kForm.max_name_bytes));
  LOCKET_TRY(const auto description, fields.optional_string("description"));
  name_space.description = description.value_or("");
  const std::string tools_path = fields.path_of("tools");
  LOCKET_TRY(const JsonValue* tools, fields.optional_array("tools"));
  if (tools == nullptr) return missing_field(tools_path, "a list of functions");
  for (std::size_t index = 0; index < tools->items.size(); ++index) {
    LOCKET_TRY_STATUS(
        add_nested(tools->items[index], item_path(tools_path, index), name_space, request));
  }
  return {};
}

Status add_tool(const JsonValue& value, std::string_view path, ChatRequest& request) {
  if (!value.is_object()) return wrong_value(path, value, "an object with a type");
  LOCKET_TRY(const std::string type, Fields(value, path).required_string("type"));
  if (type == "function") return add_function(value, path, request);
  if (type == "namespace") return add_namespace(value, path, request);
  if (type == "custom") return add_custom(value, path, request);
  return {};
}

// The flat name that an object with "name", and perhaps "namespace", means.
Result<std::string> chosen_name(const JsonValue& value, std::string_view path) {
  const Fields fields(value, path);
  LOCKET_TRY(const JsonValue* function, fields.optional_object("function"));
  const std::string inner_path = fields.path_of("function");
  const Fields named = function == nullptr ? fields : Fields(*function, inner_path);
  LOCKET_TRY(const std::string name, named.required_string("name"));
  LOCKET_TRY(const auto name_space, named.optional_string("namespace"));
  return flat_tool_name(name_space.value_or(""), name);
}

Status keep_allowed(const JsonValue& choice, ChatRequest& request) {
  const Fields fields(choice, "tool_choice");
  const std::string tools_path = fields.path_of("tools");
  LOCKET_TRY(const JsonValue* list, fields.optional_array("tools"));
  if (list == nullptr) return missing_field(tools_path, "a list of tools");
  std::set<std::string> names;
  for (std::size_t index = 0; index < list->items.size(); ++index) {
    const JsonValue& item = list->items[index];
    const JsonValue* type = item.find("type");
    if (type == nullptr || (type->text != "function" && type->text != "custom")) continue;
    LOCKET_TRY(std::string name, chosen_name(item, item_path(tools_path, index)));
    names.insert(std::move(name));
  }
  std::erase_if(request.tools, [&](const Tool& tool) { return !names.contains(tool.name); });
  LOCKET_TRY(const std::string mode, fields.required_string("mode"));
  if (mode == "auto") return {};
  if (mode != "required") {
    return wrong_value(fields.path_of("mode"), json_string(mode), "\"auto\" or \"required\"");
  }
  request.tool_choice.kind = ToolChoice::Kind::kRequired;
  return {};
}

}  // namespace

std::string flat_tool_name(std::string_view name_space, std::string_view name) {
  if (name_space.empty()) return std::string(name);
  return fmt::format("{}::{}", name_space, name);
}

Status parse_responses_tools(const JsonValue& body, ChatRequest& request) {
  LOCKET_TRY(const JsonValue* list, Fields(body, "").optional_array("tools"));
  if (list == nullptr) return {};
  for (std::size_t index = 0; index < list->items.size(); ++index) {
    LOCKET_TRY_STATUS(add_tool(list->items[index], item_path("tools", index), request));
  }
  return check_tools(request.tools);
}

Status parse_responses_tool_choice(const JsonValue& body, ChatRequest& request) {
  const JsonValue* value = find_present(body, "tool_choice");
  if (value == nullptr || !value->is_object()) {
    LOCKET_TRY(request.tool_choice, parse_tool_choice(body));
    return {};
  }
  LOCKET_TRY(const std::string type, Fields(*value, "tool_choice").required_string("type"));
  if (type == "allowed_tools") return keep_allowed(*value, request);
  if (type == "function" || type == "custom") {
    LOCKET_TRY(request.tool_choice.name, chosen_name(*value, "tool_choice"));
    request.tool_choice.kind = ToolChoice::Kind::kNamed;
  }
  return {};
}

}  // namespace locket::chat
