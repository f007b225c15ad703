#include "chat/responses_input.h"

#include <array>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "chat/json_fields.h"
#include "chat/message_text.h"
#include "chat/python_json.h"
#include "chat/request_fields.h"
#include "chat/responses_parts.h"
#include "chat/responses_tools.h"

namespace locket::chat {
namespace {

struct RoleRow {
  std::string_view name;
  Role role;
  PartKinds parts;
};

// Developers speak with the system's voice here.
constexpr std::array<RoleRow, 4> kRoles = {
    {{"user", Role::kUser, PartKinds::kTextAndImages},
     {"assistant", Role::kAssistant, PartKinds::kText},
     {"system", Role::kSystem, PartKinds::kText},
     {"developer", Role::kSystem, PartKinds::kTextAndImages}}};

class InputReader {
 public:
  explicit InputReader(const IssuedItems& items) : items_(items) {}

  Status add(const JsonValue& item, const std::string& path) {
    if (!item.is_object()) return wrong_value(path, item, "an object");
    LOCKET_TRY(const auto type, Fields(item, path).optional_string("type"));
    if (!type || *type == "message") return add_message(item, path);
    if (*type == "reasoning") return add_reasoning(item, path);
    if (*type == "item_reference") return add_reference(item, path);
    if (*type == "function_call") return add_function_call(item, path);
    if (*type == "custom_tool_call") return add_custom_call(item, path);
    if (*type == "function_call_output" || *type == "custom_tool_call_output") {
      return add_output(item, path);
    }
    return {};
  }

  Result<std::vector<Message>> finish() {
    for (const auto& [id, call] : calls_) {
      if (call.has_output) continue;
      return fail(ErrorCode::kBadRequest,
                  fmt::format("{} is the call \"{}\", which has no output; send an item "
                              "function_call_output with this call_id",
                              call.path, id));
    }
    return std::move(messages_);
  }

 private:
  struct Call {
    std::string path;
    bool has_output = false;
  };

  Status add_message(const JsonValue& item, const std::string& path) {
    const Fields fields(item, path);
    LOCKET_TRY(const std::string name, fields.required_string("role"));
    const RoleRow* row = nullptr;
    for (const RoleRow& candidate : kRoles) {
      if (candidate.name == name) row = &candidate;
    }
    if (row == nullptr) {
      return wrong_value(fields.path_of("role"), json_string(name),
                         "\"user\", \"assistant\", \"system\" or \"developer\"");
    }
    LOCKET_TRY(std::vector<ContentPart> content,
               parse_responses_parts(item.find("content"), fields.path_of("content"), row->parts));
    if (row->role == Role::kAssistant) {
      add_text(std::move(content));
      return {};
    }
    Message message;
    message.role = row->role;
    message.content = std::move(content);
    add_other(std::move(message));
    return {};
  }

  Status add_reasoning(const JsonValue& item, const std::string& path) {
    LOCKET_TRY(const std::string text, parse_reasoning_text(item, path));
    extend_reasoning(text);
    return {};
  }

  Status add_reference(const JsonValue& item, const std::string& path) {
    LOCKET_TRY(const std::string id, Fields(item, path).required_string("id"));
    const std::optional<IssuedItem> found = items_.find(id);
    if (!found) {
      if (id.starts_with("rs_")) return {};
      return fail(ErrorCode::kBadRequest,
                  fmt::format("{}.id is {}, and no such item is kept; send the item itself instead "
                              "of a reference (clients do so with \"store\": false)",
                              path, python_json(json_string(id.substr(0, kShownIdBytes)))));
    }
    if (found->kind == IssuedItem::Kind::kReasoning) {
      extend_reasoning(found->text);
      return {};
    }
    add_text({{ContentPart::Kind::kText, found->text, {}}});
    return {};
  }

  Status add_function_call(const JsonValue& item, const std::string& path) {
    const Fields fields(item, path);
    ToolCall call;
    LOCKET_TRY(const std::string name, fields.required_string("name"));
    LOCKET_TRY(const auto name_space, fields.optional_string("namespace"));
    call.name = flat_tool_name(name_space.value_or(""), name);
    LOCKET_TRY(const auto arguments, fields.optional_string("arguments"));
    call.arguments = arguments.value_or("{}");
    return add_call(fields, path, std::move(call));
  }

  Status add_custom_call(const JsonValue& item, const std::string& path) {
    const Fields fields(item, path);
    ToolCall call;
    LOCKET_TRY(call.name, fields.required_string("name"));
    if (call.name != kPatchTool) {
      return wrong_value(fields.path_of("name"), json_string(call.name),
                         "\"apply_patch\" in a custom_tool_call");
    }
    LOCKET_TRY(const std::string input, fields.required_string("input"));
    call.arguments = fmt::format("{{\"input\": {}}}", python_json(json_string(input)));
    return add_call(fields, path, std::move(call));
  }

  Status add_call(const Fields& fields, const std::string& path, ToolCall call) {
    LOCKET_TRY(call.id, fields.required_string("call_id"));
    if (call.id.empty() || !calls_.try_emplace(call.id, Call{path, false}).second) {
      return wrong_value(fields.path_of("call_id"), json_string(call.id),
                         "an id that no other call has");
    }
    if (!is_open_) open_message();
    messages_.back().tool_calls.push_back(std::move(call));
    return {};
  }

  Status add_output(const JsonValue& item, const std::string& path) {
    const Fields fields(item, path);
    Message message;
    message.role = Role::kTool;
    LOCKET_TRY(message.tool_call_id, fields.required_string("call_id"));
    const auto call = calls_.find(message.tool_call_id);
    if (call == calls_.end() || call->second.has_output) {
      return wrong_value(fields.path_of("call_id"), json_string(message.tool_call_id),
                         "the id of an earlier call without an output; send the whole "
                         "conversation, with the item that made the call");
    }
    call->second.has_output = true;
    LOCKET_TRY(message.content, parse_responses_parts(item.find("output"), fields.path_of("output"),
                                                      PartKinds::kTextAndImages));
    add_other(std::move(message));
    return {};
  }

  void add_other(Message message) {
    messages_.push_back(std::move(message));
    is_open_ = false;
  }

  void open_message() {
    Message message;
    message.role = Role::kAssistant;
    messages_.push_back(std::move(message));
    is_open_ = true;
  }

  // Thoughts behind a finished text begin another message; those between calls do not.
  void extend_reasoning(std::string_view text) {
    if (text.empty()) return;
    const bool is_behind_text =
        is_open_ && !messages_.back().content.empty() && messages_.back().tool_calls.empty();
    if (!is_open_ || is_behind_text) open_message();
    std::string& reasoning = messages_.back().reasoning;
    if (!reasoning.empty()) reasoning += kBlockGap;
    reasoning += text;
  }

  void add_text(std::vector<ContentPart> content) {
    if (!is_open_ || !messages_.back().content.empty()) open_message();
    messages_.back().content = std::move(content);
  }

  static constexpr std::size_t kShownIdBytes = 80;

  const IssuedItems& items_;
  std::vector<Message> messages_;
  bool is_open_ = false;  // the last message is an assistant's, and more may join it
  std::map<std::string, Call> calls_;
};

}  // namespace

Result<std::vector<Message>> parse_responses_input(const JsonValue& body,
                                                   const IssuedItems& items) {
  const JsonValue* input = find_present(body, "input");
  if (input == nullptr) return missing_field("input", "a string or a list of items");
  if (input->is_string()) return std::vector<Message>{text_message(Role::kUser, input->text)};
  if (!input->is_array() || input->items.empty()) {
    return wrong_value("input", *input, "a string or a list of at least one item");
  }
  LOCKET_TRY_STATUS(check_list_length(*input, "input"));
  InputReader reader(items);
  for (std::size_t index = 0; index < input->items.size(); ++index) {
    LOCKET_TRY_STATUS(reader.add(input->items[index], item_path("input", index)));
  }
  return reader.finish();
}

}  // namespace locket::chat
