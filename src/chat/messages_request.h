// A request from the JSON body of the Messages format. Every refusal names the field, the value
// found and what would be right. Pure function, thread-safe.
#pragma once

#include <string_view>

#include "base/result.h"
#include "chat/message.h"

namespace locket::chat {

// kBadRequest, or kUnsupported for documents and other kinds of content that are not offered.
[[nodiscard]] Result<ChatRequest> parse_messages_request(std::string_view json);

}  // namespace locket::chat
