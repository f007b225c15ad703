// Blocks of content of the Messages format. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/json_value.h"
#include "chat/message.h"
#include "chat/messages_tools.h"

namespace locket::chat {

// Text and pictures, of a user or of a tool's result. kBadRequest names the block and the field;
// kUnsupported for documents and other kinds that are known. `type` is the block's.
[[nodiscard]] Result<ContentPart> parse_user_block(const JsonValue& block, std::string_view path,
                                                   std::string_view type);

// A system text: a string or a list of text blocks; nullptr and null are empty. What changes with
// every request is taken out, and blocks that nothing is left of.
[[nodiscard]] Result<std::vector<ContentPart>> parse_system_text(const JsonValue* content,
                                                                 std::string_view path);

// The "content" of a tool's result. A reference to a tool becomes the line that shows it.
[[nodiscard]] Result<std::vector<ContentPart>> parse_result_content(const JsonValue& block,
                                                                    std::string_view path,
                                                                    const MessagesTools& tools);

// Thoughts, text and calls of an assistant. `block` is an object of the given type.
[[nodiscard]] Status add_assistant_block(const JsonValue& block, std::string_view path,
                                         Message& message);

// The type of a block, which must be an object.
[[nodiscard]] Result<std::string> block_type(const JsonValue& block, std::string_view path);

}  // namespace locket::chat
