// The text of a message whose content came in parts. Pure functions, thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "chat/message.h"

namespace locket::chat {

// What stands between two parts of a message, and between two blocks of a user turn.
inline constexpr std::string_view kBlockGap = "\n\n";

// The texts of all parts, with kBlockGap between them.
std::string joined_text(const Message& message);

}  // namespace locket::chat
