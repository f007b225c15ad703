#include "chat/messages_blocks.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <utility>

#include "chat/json_fields.h"
#include "chat/message_text.h"
#include "chat/python_json.h"
#include "chat/render_tools.h"
#include "chat/request_images.h"
#include "chat/volatile_text.h"

namespace locket::chat {
namespace {

// Known, and not offered.
constexpr std::array<std::string_view, 5> kUnsupportedBlocks = {
    "document", "redacted_thinking", "search_result", "container_upload", "tool_addition"};

// What a service's own tools did: no words of the model, and no call that waits for a result.
constexpr std::string_view kServerCall = "server_tool_use";
constexpr std::array<std::string_view, 3> kServerResults = {
    "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result"};

bool is_of_server(std::string_view type) {
  return type == kServerCall ||
         std::find(kServerResults.begin(), kServerResults.end(), type) != kServerResults.end();
}

ContentPart text_part(std::string text) { return {ContentPart::Kind::kText, std::move(text), {}}; }

tl::unexpected<Error> refused_block(std::string_view path, std::string_view type,
                                    std::string_view wanted) {
  if (std::find(kUnsupportedBlocks.begin(), kUnsupportedBlocks.end(), type) !=
      kUnsupportedBlocks.end()) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} is a block of type {}, which is not supported; send {}", path, type,
                            wanted));
  }
  return wrong_value(field_path(path, "type"), json_string(std::string(type)), wanted);
}

Result<ContentPart> parse_image_block(const JsonValue& block, std::string_view path) {
  const Fields fields(block, path);
  const std::string source_path = fields.path_of("source");
  LOCKET_TRY(const JsonValue* source, fields.optional_object("source"));
  if (source == nullptr) return missing_field(source_path, "an object with a type");
  const Fields parts(*source, source_path);
  LOCKET_TRY(const std::string type, parts.required_string("type"));
  ContentPart out;
  out.kind = ContentPart::Kind::kImage;
  if (type == "url") {
    LOCKET_TRY(out.image.url, parts.required_string("url"));
  } else if (type == "base64") {
    LOCKET_TRY(const std::string media, parts.required_string("media_type"));
    LOCKET_TRY(const std::string data, parts.required_string("data"));
    out.image.url = fmt::format("data:{};base64,{}", media, data);
  } else if (type == "file") {
    return fail(ErrorCode::kUnsupported,
                fmt::format("{} is a file, which is not supported; send the picture in base64",
                            source_path));
  } else {
    return wrong_value(parts.path_of("type"), json_string(type), "\"base64\" or \"url\"");
  }
  LOCKET_TRY_STATUS(check_image(source_path, out.image));
  return out;
}

Result<ContentPart> parse_tool_reference(const JsonValue& block, std::string_view path,
                                         const MessagesTools& tools) {
  LOCKET_TRY(const std::string name, Fields(block, path).required_string("tool_name"));
  for (const std::vector<Tool>* list : {&tools.deferred, &tools.shown}) {
    for (const Tool& tool : *list) {
      if (tool.name != name) continue;
      std::string line = tool_line(tool);
      line.pop_back();
      return text_part(std::move(line));
    }
  }
  return text_part(name);
}

Status add_call(const JsonValue& block, std::string_view path, Message& message) {
  const Fields fields(block, path);
  ToolCall call;
  LOCKET_TRY(call.id, fields.required_string("id"));
  if (call.id.empty()) {
    return wrong_value(fields.path_of("id"), json_string(""), "an id that no other call has");
  }
  LOCKET_TRY(call.name, fields.required_string("name"));
  LOCKET_TRY(const JsonValue* input, fields.optional_object("input"));
  call.arguments = input == nullptr ? "{}" : python_json(*input);
  message.tool_calls.push_back(std::move(call));
  return {};
}

}  // namespace

Result<std::string> block_type(const JsonValue& block, std::string_view path) {
  if (!block.is_object()) return wrong_value(path, block, "an object with a type");
  return Fields(block, path).required_string("type");
}

Result<ContentPart> parse_user_block(const JsonValue& block, std::string_view path,
                                     std::string_view type) {
  if (type == "text") {
    LOCKET_TRY(std::string text, Fields(block, path).required_string("text"));
    return text_part(std::move(text));
  }
  if (type == "image") return parse_image_block(block, path);
  return refused_block(path, type, "\"text\" or \"image\"");
}

Result<std::vector<ContentPart>> parse_system_text(const JsonValue* content,
                                                   std::string_view path) {
  std::vector<std::string> texts;
  if (content != nullptr && content->is_string()) {
    texts.push_back(content->text);
  } else if (content != nullptr && !content->is_null()) {
    if (!content->is_array()) return wrong_value(path, *content, "a string or a list of blocks");
    for (std::size_t index = 0; index < content->items.size(); ++index) {
      const JsonValue& block = content->items[index];
      const std::string block_path = item_path(path, index);
      LOCKET_TRY(const std::string type, block_type(block, block_path));
      if (type != "text") return refused_block(block_path, type, "\"text\"");
      LOCKET_TRY(std::string text, Fields(block, block_path).required_string("text"));
      texts.push_back(std::move(text));
    }
  }
  std::vector<ContentPart> parts;
  for (const std::string& text : texts) {
    std::string stable = without_volatile_lines(text);
    if (!stable.empty() || text.empty()) parts.push_back(text_part(std::move(stable)));
  }
  return parts;
}

Result<std::vector<ContentPart>> parse_result_content(const JsonValue& block, std::string_view path,
                                                      const MessagesTools& tools) {
  std::vector<ContentPart> parts;
  const std::string content_path = field_path(path, "content");
  const JsonValue* content = find_present(block, "content");
  if (content == nullptr) return parts;
  if (content->is_string()) {
    parts.push_back(text_part(content->text));
    return parts;
  }
  if (!content->is_array()) {
    return wrong_value(content_path, *content, "a string or a list of blocks");
  }
  for (std::size_t index = 0; index < content->items.size(); ++index) {
    const JsonValue& inner = content->items[index];
    const std::string inner_path = item_path(content_path, index);
    LOCKET_TRY(const std::string type, block_type(inner, inner_path));
    LOCKET_TRY(ContentPart part, type == "tool_reference"
                                     ? parse_tool_reference(inner, inner_path, tools)
                                     : parse_user_block(inner, inner_path, type));
    parts.push_back(std::move(part));
  }
  return parts;
}

Status add_assistant_block(const JsonValue& block, std::string_view path, Message& message) {
  LOCKET_TRY(const std::string type, block_type(block, path));
  const Fields fields(block, path);
  if (type == "text") {
    LOCKET_TRY(std::string text, fields.required_string("text"));
    message.content.push_back(text_part(std::move(text)));
    return {};
  }
  if (type == "thinking") {
    LOCKET_TRY(const std::string thought, fields.required_string("thinking"));
    if (!message.reasoning.empty() && !thought.empty()) message.reasoning += kBlockGap;
    message.reasoning += thought;
    return {};
  }
  if (type == "tool_use") return add_call(block, path, message);
  if (is_of_server(type)) return {};
  return refused_block(path, type, "\"text\", \"thinking\" or \"tool_use\"");
}

}  // namespace locket::chat
