#include "chat/request_tools.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <utility>

#include "chat/json_fields.h"
#include "chat/json_reader.h"
#include "chat/python_json.h"
#include "chat/strict_schema.h"

namespace locket::chat {
namespace {

bool is_name_character(char byte) {
  return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
         (byte >= '0' && byte <= '9') || byte == '_' || byte == '-';
}

// Nothing if the tool takes no parameters.
Result<std::optional<std::string>> parse_parameters(const JsonValue& function, const Fields& fields,
                                                    std::string_view name, bool is_strict) {
  const JsonValue* parameters = find_present(function, name);
  if (parameters == nullptr) return std::optional<std::string>();
  const std::string path = fields.path_of(name);
  const JsonValue* type = parameters->find("type");
  if (!parameters->is_object() || type == nullptr || type->text != "object") {
    return wrong_value(path, *parameters, "a JSON schema with \"type\": \"object\"");
  }
  if (!is_strict) return std::optional(python_json(*parameters));
  LOCKET_TRY(const JsonValue strict, normalize_strict_schema(*parameters, path));
  return std::optional(python_json(strict));
}

Result<Tool> parse_tool(const JsonValue& value, std::string_view path) {
  if (!value.is_object()) return wrong_value(path, value, "an object");
  const Fields fields(value, path);
  LOCKET_TRY(const auto type, fields.optional_string("type"));
  if (type.value_or("function") != "function") {
    return wrong_value(fields.path_of("type"), json_string(*type), "\"function\"");
  }
  const std::string function_path = fields.path_of("function");
  LOCKET_TRY(const JsonValue* function, fields.optional_object("function"));
  if (function == nullptr) return missing_field(function_path, "an object with a name");
  return parse_function(*function, function_path, {});
}

Status check_tool_count(std::size_t count) {
  if (count <= kMaxTools) return {};
  return fail(ErrorCode::kBadRequest,
              fmt::format("tools has {} entries; at most {} are allowed", count, kMaxTools));
}

ResponseFormat schema_format(const JsonValue& schema) {
  return {ResponseFormat::Kind::kJsonSchema, python_json(schema)};
}

// A schema as an object, or as the text of one.
Result<ResponseFormat> parse_guided_schema(const JsonValue& value, std::string_view path) {
  if (value.is_object()) return schema_format(value);
  if (!value.is_string()) return wrong_value(path, value, "a JSON schema");
  LOCKET_TRY(const JsonValue schema, read_json(value.text, path, kRequestLimits));
  if (!schema.is_object()) return wrong_value(path, schema, "a JSON schema");
  return schema_format(schema);
}

tl::unexpected<Error> unsupported_guide(std::string_view path) {
  return fail(ErrorCode::kUnsupported,
              fmt::format("{} is not supported; guide the answer by a JSON schema", path));
}

Result<ResponseFormat> parse_structured_outputs(const JsonValue& value) {
  constexpr std::string_view kPath = "structured_outputs";
  constexpr std::array<std::string_view, 4> kOthers = {"regex", "choice", "grammar",
                                                       "structural_tag"};
  for (const std::string_view name : kOthers) {
    if (find_present(value, name) != nullptr) return unsupported_guide(field_path(kPath, name));
  }
  const Fields fields(value, kPath);
  if (const JsonValue* schema = find_present(value, "json")) {
    return parse_guided_schema(*schema, fields.path_of("json"));
  }
  LOCKET_TRY(const auto is_object, fields.optional_bool("json_object"));
  return ResponseFormat{
      is_object.value_or(false) ? ResponseFormat::Kind::kJsonObject : ResponseFormat::Kind::kText,
      ""};
}

// What other servers call response_format.
Result<ResponseFormat> parse_guides(const JsonValue& body) {
  for (const std::string_view name : {"guided_regex", "guided_choice", "guided_grammar"}) {
    if (find_present(body, name) != nullptr) return unsupported_guide(name);
  }
  LOCKET_TRY(const JsonValue* outputs, Fields(body, "").optional_object("structured_outputs"));
  if (outputs != nullptr) return parse_structured_outputs(*outputs);
  const JsonValue* schema = find_present(body, "guided_json");
  if (schema == nullptr) return ResponseFormat{};
  return parse_guided_schema(*schema, "guided_json");
}

}  // namespace

Result<std::string> parse_tool_name(const JsonValue& object, std::string_view path,
                                    std::size_t max_bytes) {
  const Fields fields(object, path);
  LOCKET_TRY(std::string name, fields.required_string("name"));
  if (name.empty() || name.size() > max_bytes ||
      !std::all_of(name.begin(), name.end(), is_name_character)) {
    return wrong_value(fields.path_of("name"), json_string(name),
                       fmt::format("1 to {} letters, digits, '_' or '-'", max_bytes));
  }
  return name;
}

Result<Tool> parse_function(const JsonValue& function, std::string_view path,
                            const FunctionForm& form) {
  const Fields fields(function, path);
  Tool tool;
  LOCKET_TRY(tool.name, parse_tool_name(function, path, form.max_name_bytes));
  LOCKET_TRY(const auto description, fields.optional_string("description"));
  tool.description = description.value_or("");
  LOCKET_TRY(const auto strict, fields.optional_bool("strict"));
  tool.is_strict = strict.value_or(false);
  LOCKET_TRY(auto parameters, parse_parameters(function, fields, form.parameters, tool.is_strict));
  if (parameters) tool.parameters = *std::move(parameters);
  return tool;
}

Status check_tools(const std::vector<Tool>& tools) {
  LOCKET_TRY_STATUS(check_tool_count(tools.size()));
  std::set<std::string_view> names;
  for (const Tool& tool : tools) {
    if (names.insert(tool.name).second) continue;
    return fail(
        ErrorCode::kBadRequest,
        fmt::format("tools has two entries of the name \"{}\"; names must differ", tool.name));
  }
  return {};
}

Result<std::vector<Tool>> parse_tools(const JsonValue& body) {
  std::vector<Tool> tools;
  LOCKET_TRY(const JsonValue* list, Fields(body, "").optional_array("tools"));
  if (list == nullptr) return tools;
  LOCKET_TRY_STATUS(check_tool_count(list->items.size()));
  std::size_t strict_count = 0;
  for (std::size_t index = 0; index < list->items.size(); ++index) {
    LOCKET_TRY(Tool tool, parse_tool(list->items[index], item_path("tools", index)));
    strict_count += tool.is_strict ? 1 : 0;
    tools.push_back(std::move(tool));
  }
  LOCKET_TRY_STATUS(check_tools(tools));
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

Result<ResponseFormat> parse_schema_format(const JsonValue& holder, std::string_view path) {
  const Fields fields(holder, path);
  LOCKET_TRY(const JsonValue* schema, fields.optional_object("schema"));
  const std::string schema_path = fields.path_of("schema");
  if (schema == nullptr) return missing_field(schema_path, "a JSON schema");
  LOCKET_TRY(const auto strict, fields.optional_bool("strict"));
  if (!strict.value_or(false)) return schema_format(*schema);
  LOCKET_TRY(const JsonValue normalized, normalize_strict_schema(*schema, schema_path));
  return schema_format(normalized);
}

Result<ResponseFormat> parse_response_format(const JsonValue& body) {
  LOCKET_TRY(const JsonValue* value, Fields(body, "").optional_object("response_format"));
  if (value == nullptr) return parse_guides(body);
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
  return parse_schema_format(*wrapper, "response_format.json_schema");
}

}  // namespace locket::chat
