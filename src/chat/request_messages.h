// The "messages" of a chat request. Checks one message at a time; rules that span messages (order,
// results without calls) are in check_messages.h. Pure function, thread-safe.
#pragma once

#include <vector>

#include "base/result.h"
#include "chat/json_value.h"
#include "chat/message.h"

namespace locket::chat {

// kBadRequest names the message and the field.
[[nodiscard]] Result<std::vector<Message>> parse_messages(const JsonValue& body);

}  // namespace locket::chat
