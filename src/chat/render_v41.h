// Renders a chat request to the prompt of the V4.1 generation: turns, the effort line, tools,
// response format, the header of the answer, and where the parser of the answer starts. Pure
// functions, thread-safe; the result owns its memory.
#pragma once

#include "base/result.h"
#include "chat/message.h"
#include "chat/rendered_prompt.h"
#include "tokenizer/tokenizer.h"

namespace locket::chat {

// Segments, images and parser start; `ids` and `system_ids` stay empty. REQUIRES: `request` passed
// check_messages().
RenderedPrompt render_segments(const ChatRequest& request);

// The whole prompt. kUnsupported names a control token that the tokenizer lacks.
[[nodiscard]] Result<RenderedPrompt> render_v41(const ChatRequest& request,
                                                const tokenizer::Tokenizer& tokenizer);

}  // namespace locket::chat
