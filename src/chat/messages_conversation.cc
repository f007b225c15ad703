#include "chat/messages_conversation.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "chat/json_fields.h"
#include "chat/messages_blocks.h"
#include "chat/request_fields.h"

namespace locket::chat {
namespace {

class ConversationReader {
 public:
  explicit ConversationReader(const MessagesTools& tools) : tools_(tools) {}

  Status add_system(const JsonValue* content, std::string_view path) {
    Message message;
    message.role = Role::kSystem;
    LOCKET_TRY(message.content, parse_system_text(content, path));
    if (!message.content.empty()) messages_.push_back(std::move(message));
    return {};
  }

  Status add(const JsonValue& value, std::size_t index) {
    const std::string path = item_path("messages", index);
    if (!value.is_object()) return wrong_value(path, value, "an object with a role");
    const Fields fields(value, path);
    LOCKET_TRY(const std::string role, fields.required_string("role"));
    const JsonValue* content = find_present(value, "content");
    const std::string content_path = fields.path_of("content");
    if (role == "system") return add_system(content, content_path);
    if (content != nullptr && !content->is_string() && !content->is_array()) {
      return wrong_value(content_path, *content, "a string or a list of blocks");
    }
    if (role == "user") return add_user(content, content_path, index);
    if (role == "assistant") return add_assistant(content, content_path, index);
    return wrong_value(fields.path_of("role"), json_string(role),
                       "\"user\", \"assistant\" or \"system\"");
  }

  Result<std::vector<Message>> finish(std::size_t count) {
    LOCKET_TRY_STATUS(check_waiting(count));
    return std::move(messages_);
  }

 private:
  // In the words that clients of this format know and act on.
  Status check_waiting(std::size_t index) const {
    if (waiting_.empty()) return {};
    std::string ids;
    for (const std::string& id : waiting_) ids += fmt::format("{}{}", ids.empty() ? "" : ", ", id);
    return fail(ErrorCode::kBadRequest,
                fmt::format("messages.{}: `tool_use` ids were found without `tool_result` blocks "
                            "immediately after: {}. Each `tool_use` block must have a "
                            "corresponding `tool_result` block in the next message.",
                            index, ids));
  }

  Status add_result(const JsonValue& block, std::string_view path) {
    Message message;
    message.role = Role::kTool;
    LOCKET_TRY(message.tool_call_id, Fields(block, path).required_string("tool_use_id"));
    const auto place = std::find(waiting_.begin(), waiting_.end(), message.tool_call_id);
    if (place == waiting_.end()) {
      return fail(ErrorCode::kBadRequest,
                  fmt::format("{}: unexpected `tool_use_id` found in `tool_result` blocks: {}. "
                              "Each `tool_result` block must have a corresponding `tool_use` "
                              "block in the previous message.",
                              path, message.tool_call_id));
    }
    waiting_.erase(place);
    LOCKET_TRY(message.content, parse_result_content(block, path, tools_));
    messages_.push_back(std::move(message));
    return {};
  }

  Status add_user(const JsonValue* content, const std::string& path, std::size_t index) {
    Message message;
    std::size_t next = 0;
    const bool is_list = content != nullptr && content->is_array();
    for (; is_list && next < content->items.size(); ++next) {
      const std::string block_path = item_path(path, next);
      LOCKET_TRY(const std::string type, block_type(content->items[next], block_path));
      if (type != "tool_result") break;
      LOCKET_TRY_STATUS(add_result(content->items[next], block_path));
    }
    LOCKET_TRY_STATUS(check_waiting(index));
    const bool has_results = next > 0;
    if (content != nullptr && content->is_string()) {
      message.content.push_back({ContentPart::Kind::kText, content->text, {}});
    }
    for (; is_list && next < content->items.size(); ++next) {
      const JsonValue& block = content->items[next];
      const std::string block_path = item_path(path, next);
      LOCKET_TRY(const std::string type, block_type(block, block_path));
      if (type == "tool_result") return add_result(block, block_path);
      LOCKET_TRY(ContentPart part, parse_user_block(block, block_path, type));
      message.content.push_back(std::move(part));
    }
    if (!has_results || !message.content.empty()) messages_.push_back(std::move(message));
    return {};
  }

  Status add_assistant(const JsonValue* content, const std::string& path, std::size_t index) {
    LOCKET_TRY_STATUS(check_waiting(index));
    Message message;
    message.role = Role::kAssistant;
    if (content != nullptr && content->is_string()) {
      message.content.push_back({ContentPart::Kind::kText, content->text, {}});
    }
    const bool is_list = content != nullptr && content->is_array();
    for (std::size_t next = 0; is_list && next < content->items.size(); ++next) {
      LOCKET_TRY_STATUS(add_assistant_block(content->items[next], item_path(path, next), message));
    }
    for (const ToolCall& call : message.tool_calls) {
      if (!ids_.insert(call.id).second) {
        return fail(ErrorCode::kBadRequest,
                    fmt::format("messages.{}: `tool_use` ids must be unique: {}", index, call.id));
      }
      waiting_.push_back(call.id);
    }
    messages_.push_back(std::move(message));
    return {};
  }

  const MessagesTools& tools_;
  std::vector<Message> messages_;
  std::vector<std::string> waiting_;  // calls of the last assistant message without a result
  std::set<std::string> ids_;         // of all calls
};

}  // namespace

Result<std::vector<Message>> parse_messages_conversation(const JsonValue& body,
                                                         const MessagesTools& tools) {
  const JsonValue* list = find_present(body, "messages");
  if (list == nullptr) return missing_field("messages", "a list of messages");
  if (!list->is_array() || list->items.empty()) {
    return wrong_value("messages", *list, "a list of at least one message");
  }
  LOCKET_TRY_STATUS(check_list_length(*list, "messages"));
  ConversationReader reader(tools);
  LOCKET_TRY_STATUS(reader.add_system(body.find("system"), "system"));
  for (std::size_t index = 0; index < list->items.size(); ++index) {
    LOCKET_TRY_STATUS(reader.add(list->items[index], index));
  }
  LOCKET_TRY(std::vector<Message> messages, reader.finish(list->items.size()));
  if (messages.empty()) {
    return fail(ErrorCode::kBadRequest,
                "messages has none that says something; it must have at least one message");
  }
  return messages;
}

}  // namespace locket::chat
