// The prompt formats of the generations, what each can express, and which one a model has. Plain
// data and pure functions, thread-safe.
#pragma once

#include <string_view>

#include "base/result.h"
#include "chat/message.h"
#include "tokenizer/tokenizer.h"

namespace locket::chat {

enum class ChatFormat {
  kV1,       // V1 and V2
  kV3,       // V2.5 and V3
  kR1,       // always thinks
  kV31,      // V3.1, and V3.2-Exp
  kV32,      // V3.2
  kV4,       // V4-Flash, V4-Pro
  kV41,      // V4.1-Flash
  kChatMl,   // other models of V1's architecture
  kSmolLm2,  // ChatML with instructions of its own
  kCount
};

// For people, for example "V3.1".
std::string_view chat_format_name(ChatFormat format);

// What a model says of itself, apart from its weights.
struct ChatModel {
  std::string_view generation;     // as the engine names it: "V1" .. "V4.1"
  std::string_view template_text;  // the chat template that it was published with; may be empty
};

// By the generation and by the control tokens that the tokenizer has; among V3, R1 and V3.1 that
// differ in nothing else, also by what the template mentions. kBadCheckpoint names the token that
// is missing; kUnsupported an unknown generation.
[[nodiscard]] Result<ChatFormat> choose_chat_format(const ChatModel& model,
                                                    const tokenizer::Tokenizer& tokenizer);

// kUnsupported, naming the message or the field, for what the format has no words for: tools and
// their results, pictures, reminders, tasks.
[[nodiscard]] Status check_format(const ChatRequest& request, ChatFormat format);

}  // namespace locket::chat
