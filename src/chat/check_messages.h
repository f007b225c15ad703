// Rules that span messages and fields of a request. Old histories cannot be repaired by the client
// that sends them, so gaps (calls without results, results that come late, empty messages) are
// allowed; what cannot be rendered with a meaning is refused. Pure function, thread-safe.
#pragma once

#include "base/result.h"
#include "chat/message.h"

namespace locket::chat {

// kBadRequest names the message and the id:
// - a call id twice in one message; a result for which no call waits
// - an unfinished message that is not the last, or has calls, or stands with visible tools or
//   json_object
// - a forced call in thinking mode, without tools, or of an unknown tool
[[nodiscard]] Status check_messages(const ChatRequest& request);

}  // namespace locket::chat
