#include "chat/message_text.h"

namespace locket::chat {

std::string joined_text(const Message& message) {
  std::string text;
  std::string_view gap;
  for (const ContentPart& part : message.content) {
    text.append(gap).append(part.text);
    gap = kBlockGap;
  }
  return text;
}

}  // namespace locket::chat
