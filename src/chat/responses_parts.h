// The content of items of the Responses format. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/json_value.h"
#include "chat/message.h"

namespace locket::chat {

enum class PartKinds { kText, kTextAndImages, kCount };

// A text, or a list of parts; nullptr and null are empty. kBadRequest names the part and the field;
// kUnsupported for files.
[[nodiscard]] Result<std::vector<ContentPart>> parse_responses_parts(const JsonValue* content,
                                                                     std::string_view path,
                                                                     PartKinds kinds);

// The plain text of a reasoning item; empty if it has none. Summaries are not the model's words.
[[nodiscard]] Result<std::string> parse_reasoning_text(const JsonValue& item,
                                                       std::string_view path);

}  // namespace locket::chat
