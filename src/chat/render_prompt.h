// Renders a chat request in the format of the model that will read it. Pure functions, thread-safe.
#pragma once

#include "base/result.h"
#include "chat/chat_format.h"
#include "chat/message.h"
#include "chat/rendered_prompt.h"
#include "tokenizer/tokenizer.h"

namespace locket::chat {

// Segments, images and parser start; `ids` and `system_ids` stay empty. kUnsupported for what the
// format cannot express. REQUIRES: `request` passed check_messages().
[[nodiscard]] Result<RenderedPrompt> render_segments(const ChatRequest& request, ChatFormat format);

// The whole prompt. kUnsupported also names a control token that the tokenizer lacks.
[[nodiscard]] Result<RenderedPrompt> render_prompt(const ChatRequest& request, ChatFormat format,
                                                   const tokenizer::Tokenizer& tokenizer);

}  // namespace locket::chat
