#include "chat/request_tools.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "chat/json_fields.h"
#include "chat/python_json.h"
#include "chat/strict_schema.h"

namespace locket::chat {
namespace {

constexpr std::size_t kMaxTools = 128;
constexpr std::size_t kMaxNameBytes = 64;

bool is_name_character(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '_' || byte == '-';
}

Result<std::string> parse_tool_name(const Fields& function) {
  LOCKET_TRY(std::string name, function.required_string("name"));
  if (name.empty() || name.size() > kMaxNameBytes ||
      !std::all_of(name.begin(), name.end(), is_name_character)) {
    return wrong_value(function.path_of("name"), json_string(name),
                       fmt::format("1 to {} letters, digits, '_' or '-'", kMaxNameBytes));
  }
  return name;
}

// Nothing if the tool takes no parameters.
Result<std::optional<std::string>> parse_parameters(const JsonValue& function,
                                                    std::string_view path, bool is_strict) {
  const JsonValue* parameters = find_present(function, "parameters");
  if (parameters == nullptr) return std::optional<std::string>();
  const std::string parameters_path = field_path(path, "parameters");
  const JsonValue* type = parameters->find("type");
  if (!parameters->is_object() || type == nullptr || type->text != "object") {
    return wrong_value(parameters_path, *parameters, "a JSON schema with \"type\": \"object\"");
  }
  if (!is_strict) return std::optional(python_json(*parameters));
  LOCKET_TRY(const JsonValue strict, normalize_strict_schema(*parameters, parameters_path));
  return std::optional(python_json(strict));
}

struct ParsedTool {
  Tool tool;
  bool is_strict = false;
};

Result<ParsedTool> parse_tool(const JsonValue& value, std::string_view path) {
  if (!value.is_object()) return wrong_value(path, value, "an object");
  const Fields fields(value, path);
  LOCKET_TRY(const auto type, fields.optional_string("type"));
  if (type.value_or("function") != "function") {
    return wrong_value(fields.path_of("type"), json_string(*type), "\"function\"");
  }
  const std::string function_path = fields.path_of("function");
  LOCKET_TRY(const JsonValue* function, fields.optional_object("function"));
  if (function == nullptr) return missing_field(function_path, "an object with a name");
  const Fields parts(*function, function_path);
  ParsedTool parsed;
  LOCKET_TRY(parsed.tool.name, parse_tool_name(parts));
  LOCKET_TRY(const auto description, parts.optional_string("description"));
  parsed.tool.description = description.value_or("");
  LOCKET_TRY(const auto strict, parts.optional_bool("strict"));
  parsed.is_strict = strict.value_or(false);
  LOCKET_TRY(auto parameters, parse_parameters(*function, function_path, parsed.is_strict));
  if (parameters) parsed.tool.parameters = *std::move(parameters);
  return parsed;
}

}  // namespace

Result<std::vector<Tool>> parse_tools(const JsonValue& body) {
  std::vector<Tool> tools;
  LOCKET_TRY(const JsonValue* list, Fields(body, "").optional_array("tools"));
  if (list == nullptr) return tools;
  if (list->items.size() > kMaxTools) {
    return fail(ErrorCode::kBadRequest, fmt::format("tools has {} entries; at most {} are allowed",
                                                    list->items.size(), kMaxTools));
  }
  std::set<std::string> names;
  std::size_t strict_count = 0;
  for (std::size_t index = 0; index < list->items.size(); ++index) {
    const std::string path = item_path("tools", index);
    LOCKET_TRY(ParsedTool parsed, parse_tool(list->items[index], path));
    if (!names.insert(parsed.tool.name).second) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("{}.function.name is \"{}\", which an earlier tool has; names must "
                              "differ",
                              path, parsed.tool.name));
    }
    strict_count += parsed.is_strict ? 1 : 0;
    tools.push_back(std::move(parsed.tool));
  }
  if (strict_count != 0 && strict_count != tools.size()) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("{} of {} tools are strict; either all or none must be", strict_count,
                            tools.size()));
  }
  return tools;
}

Result<ToolChoice> parse_tool_choice(const JsonValue& body) {
  constexpr std::string_view kWanted =
      "\"none\", \"auto\", \"required\" or {\"type\": \"function\", \"function\": {\"name\": ...}}";
  const JsonValue* value = find_present(body, "tool_choice");
  if (value == nullptr) return ToolChoice{};
  if (value->is_string()) {
    if (value->text == "auto") return ToolChoice{};
    if (value->text == "none") return ToolChoice{ToolChoice::Kind::kNone, ""};
    if (value->text == "required") return ToolChoice{ToolChoice::Kind::kRequired, ""};
    return wrong_value("tool_choice", *value, kWanted);
  }
  const JsonValue* type = value->find("type");
  const JsonValue* function = value->find("function");
  const JsonValue* name = function == nullptr ? nullptr : function->find("name");
  const bool is_function = type == nullptr || type->text == "function";
  if (!is_function || name == nullptr || !name->is_string()) {
    return wrong_value("tool_choice", *value, kWanted);
  }
  return ToolChoice{ToolChoice::Kind::kNamed, name->text};
}

Result<ResponseFormat> parse_response_format(const JsonValue& body) {
  LOCKET_TRY(const JsonValue* value, Fields(body, "").optional_object("response_format"));
  if (value == nullptr) return ResponseFormat{};
  const Fields fields(*value, "response_format");
  LOCKET_TRY(const std::string type, fields.required_string("type"));
  if (type == "text") return ResponseFormat{};
  if (type == "json_object") return ResponseFormat{ResponseFormat::Kind::kJsonObject, ""};
  if (type != "json_schema") {
    return wrong_value("response_format.type", json_string(type),
                       "\"text\", \"json_object\" or \"json_schema\"");
  }
  LOCKET_TRY(const JsonValue* wrapper, fields.optional_object("json_schema"));
  if (wrapper == nullptr) return missing_field("response_format.json_schema", "an object");
  const Fields parts(*wrapper, "response_format.json_schema");
  LOCKET_TRY(const JsonValue* schema, parts.optional_object("schema"));
  const std::string path = parts.path_of("schema");
  if (schema == nullptr) return missing_field(path, "a JSON schema");
  LOCKET_TRY(const auto strict, parts.optional_bool("strict"));
  ResponseFormat format{ResponseFormat::Kind::kJsonSchema, ""};
  if (strict.value_or(false)) {
    LOCKET_TRY(const JsonValue normalized, normalize_strict_schema(*schema, path));
    format.schema = python_json(normalized);
  } else {
    format.schema = python_json(*schema);
  }
  return format;
}

}  // namespace locket::chat
