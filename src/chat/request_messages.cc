#include "chat/request_messages.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <string>
#include <string_view>
#include <utility>

#include "chat/json_fields.h"
#include "chat/python_json.h"
#include "chat/request_fields.h"
#include "chat/request_images.h"

namespace locket::chat {
namespace {

using PartList = std::vector<ContentPart>;

constexpr std::array<std::pair<std::string_view, Role>, 6> kRoles = {{
    {"system", Role::kSystem},
    {"user", Role::kUser},
    {"assistant", Role::kAssistant},
    {"tool", Role::kTool},
    {"latest_reminder", Role::kLatestReminder},
    {"developer", Role::kDeveloper},
}};

constexpr std::array<std::pair<std::string_view, Task>, 6> kTasks = {{
    {"action", Task::kAction},
    {"query", Task::kQuery},
    {"authority", Task::kAuthority},
    {"domain", Task::kDomain},
    {"title", Task::kTitle},
    {"read_url", Task::kReadUrl},
}};

// The value of `name` in one of the tables above.
template <class Table>
const typename Table::value_type::second_type* find_named(const Table& table,
                                                          std::string_view name) {
  const auto entry = std::find_if(table.begin(), table.end(),
                                  [name](const auto& row) { return row.first == name; });
  return entry == table.end() ? nullptr : &entry->second;
}

template <class Table>
std::string names_of(const Table& table) {
  std::string names = "one of";
  for (const auto& row : table) names += fmt::format(" \"{}\"", row.first);
  return names;
}

ContentPart text_part(std::string text) { return {ContentPart::Kind::kText, std::move(text), {}}; }

// A part {"type": KEY, KEY: {"url": ..., "detail": ...}} or {"type": KEY, KEY: "url"}.
Result<ContentPart> parse_image_part(const JsonValue& part, std::string_view path,
                                     std::string_view key) {
  const std::string image_path = field_path(path, key);
  const JsonValue* image = find_present(part, key);
  if (image == nullptr) return missing_field(image_path, "an object with a url");
  ContentPart out;
  out.kind = ContentPart::Kind::kImage;
  if (image->is_string()) {
    out.image.url = image->text;
  } else if (image->is_object()) {
    const Fields fields(*image, image_path);
    LOCKET_TRY(out.image.url, fields.required_string("url"));
    LOCKET_TRY(out.image.detail, parse_image_detail(*image, image_path));
  } else {
    return wrong_value(image_path, *image, "an object with a url");
  }
  LOCKET_TRY_STATUS(check_image(image_path, out.image));
  return out;
}

Result<ContentPart> parse_part(const JsonValue& part, std::string_view path, Role role) {
  if (part.is_string()) return text_part(part.text);
  if (!part.is_object()) return wrong_value(path, part, "an object with a type");
  const Fields fields(part, path);
  LOCKET_TRY(const std::string type, fields.required_string("type"));
  if (type == "text") {
    LOCKET_TRY(std::string text, fields.required_string("text"));
    return text_part(std::move(text));
  }
  if (type != "image_url" && type != "image") {
    return text_part(fmt::format("[Unsupported {}]", type));
  }
  if (role == Role::kAssistant || role == Role::kLatestReminder) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("{} is an image; images may stand in user, developer, system and tool "
                            "messages",
                            path));
  }
  return parse_image_part(part, path, type);
}

Result<PartList> parse_content(const JsonValue& message, std::string_view path, Role role) {
  PartList parts;
  const std::string content_path = field_path(path, "content");
  const JsonValue* content = find_present(message, "content");
  if (content == nullptr) return parts;
  if (content->is_string()) {
    parts.push_back(text_part(content->text));
    return parts;
  }
  if (!content->is_array()) {
    return wrong_value(content_path, *content, "a string or a list of parts");
  }
  for (std::size_t index = 0; index < content->items.size(); ++index) {
    LOCKET_TRY(ContentPart part,
               parse_part(content->items[index], item_path(content_path, index), role));
    parts.push_back(std::move(part));
  }
  return parts;
}

// The arguments as text; clients that send the object itself get it written out.
Result<std::string> parse_arguments(const JsonValue& function, std::string_view path) {
  const JsonValue* arguments = find_present(function, "arguments");
  if (arguments == nullptr) return std::string("{}");
  if (arguments->is_string()) return arguments->text;
  if (arguments->is_object()) return python_json(*arguments);
  return wrong_value(field_path(path, "arguments"), *arguments, "a string of JSON, or an object");
}

Result<ToolCall> parse_tool_call(const JsonValue& value, std::string_view path) {
  if (!value.is_object()) return wrong_value(path, value, "an object");
  const Fields fields(value, path);
  LOCKET_TRY(const auto type, fields.optional_string("type"));
  if (type.value_or("function") != "function") {
    return wrong_value(fields.path_of("type"), json_string(*type), "\"function\"");
  }
  LOCKET_TRY(const auto id, fields.optional_string("id"));
  LOCKET_TRY(const JsonValue* function, fields.optional_object("function"));
  const std::string function_path = fields.path_of("function");
  if (function == nullptr) return missing_field(function_path, "an object with a name");
  ToolCall call;
  call.id = id.value_or("");
  LOCKET_TRY(call.name, Fields(*function, function_path).required_string("name"));
  LOCKET_TRY(call.arguments, parse_arguments(*function, function_path));
  return call;
}

Status parse_assistant(const JsonValue& value, std::string_view path, Message& message) {
  const Fields fields(value, path);
  LOCKET_TRY(const auto reasoning, fields.optional_string("reasoning_content"));
  message.reasoning = reasoning.value_or("");
  LOCKET_TRY(const auto is_prefix, fields.optional_bool("prefix"));
  message.is_unfinished = is_prefix.value_or(false);
  LOCKET_TRY(const JsonValue* calls, fields.optional_array("tool_calls"));
  if (calls == nullptr) return {};
  const std::string calls_path = fields.path_of("tool_calls");
  for (std::size_t index = 0; index < calls->items.size(); ++index) {
    LOCKET_TRY(ToolCall call, parse_tool_call(calls->items[index], item_path(calls_path, index)));
    message.tool_calls.push_back(std::move(call));
  }
  return {};
}

Status parse_task(const JsonValue& value, std::string_view path, Message& message) {
  LOCKET_TRY(const auto name, Fields(value, path).optional_string("task"));
  if (!name) return {};
  const Task* task = find_named(kTasks, *name);
  if (task == nullptr) {
    return wrong_value(field_path(path, "task"), json_string(*name), names_of(kTasks));
  }
  message.task = *task;
  return {};
}

bool is_one_empty_text(const PartList& parts) {
  return parts.size() == 1 && parts.front().kind == ContentPart::Kind::kText &&
         parts.front().text.empty();
}

bool has_content(const Message& message) {
  return std::any_of(message.content.begin(), message.content.end(), [](const ContentPart& part) {
    return part.kind == ContentPart::Kind::kImage || !part.text.empty();
  });
}

Result<Message> parse_message(const JsonValue& value, std::string_view path) {
  if (!value.is_object()) return wrong_value(path, value, "an object with a role");
  const Fields fields(value, path);
  LOCKET_TRY(const std::string role_name, fields.required_string("role"));
  const Role* role = find_named(kRoles, role_name);
  if (role == nullptr) {
    return wrong_value(fields.path_of("role"), json_string(role_name), names_of(kRoles));
  }
  Message message;
  message.role = *role;
  LOCKET_TRY(message.content, parse_content(value, path, *role));
  if (*role == Role::kSystem && is_one_empty_text(message.content)) message.content.clear();
  if (*role == Role::kAssistant) LOCKET_TRY_STATUS(parse_assistant(value, path, message));
  if (*role == Role::kUser || *role == Role::kDeveloper) {
    LOCKET_TRY_STATUS(parse_task(value, path, message));
  }
  if (*role == Role::kTool) {
    LOCKET_TRY(const auto id, fields.optional_string("tool_call_id"));
    message.tool_call_id = id.value_or("");
  }
  if (*role == Role::kDeveloper && !has_content(message)) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("{} is empty; a developer message must say something",
                            fields.path_of("content")));
  }
  return message;
}

}  // namespace

Result<std::vector<Message>> parse_messages(const JsonValue& body) {
  const JsonValue* list = body.find("messages");
  if (list == nullptr) return missing_field("messages", "a list of messages");
  if (!list->is_array() || list->items.empty()) {
    return wrong_value("messages", *list, "a list of at least one message");
  }
  LOCKET_TRY_STATUS(check_list_length(*list, "messages"));
  std::vector<Message> messages;
  messages.reserve(list->items.size());
  for (std::size_t index = 0; index < list->items.size(); ++index) {
    LOCKET_TRY(Message message, parse_message(list->items[index], item_path("messages", index)));
    messages.push_back(std::move(message));
  }
  return messages;
}

}  // namespace locket::chat
