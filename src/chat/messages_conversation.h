// "system" and "messages" of the Messages format as messages: results of tools become messages of
// their own. Checks the calls: each has an id of its own, and a result at the start of the user's
// next message. Pure function, thread-safe.
#pragma once

#include <vector>

#include "base/result.h"
#include "chat/json_value.h"
#include "chat/message.h"
#include "chat/messages_tools.h"

namespace locket::chat {

// kBadRequest names the message, the block and the field; kUnsupported for kinds of blocks that are
// known and not offered.
[[nodiscard]] Result<std::vector<Message>> parse_messages_conversation(const JsonValue& body,
                                                                       const MessagesTools& tools);

}  // namespace locket::chat
