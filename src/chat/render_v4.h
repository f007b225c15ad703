// Renders a chat request to the prompt of V4-Flash and V4-Pro. Against V4.1: system text has no
// token of its own, effort is a text that only the highest one has, tool markup has another
// spelling, and reasoning behind the last user turn is kept. Pure function, thread-safe.
#pragma once

#include "chat/message.h"
#include "chat/rendered_prompt.h"

namespace locket::chat {

// `ids` and `system_ids` stay empty. REQUIRES: `request` passed check_messages() and holds no
// images.
RenderedPrompt render_v4(const ChatRequest& request);

}  // namespace locket::chat
