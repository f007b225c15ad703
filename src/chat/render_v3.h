// Renders a chat request to the prompts of V2.5 and V3, of R1, and of V3.1: all system texts first,
// then turns between control tokens. Pure function, thread-safe.
#pragma once

#include "chat/message.h"
#include "chat/rendered_prompt.h"

namespace locket::chat {

// How the answer's header speaks of reasoning: not at all (V2.5, V3); it always opens it, with a
// newline (R1); it opens or closes it (V3.1).
enum class V3Thinking { kNone, kAlways, kChosen, kCount };

// `ids` and `system_ids` stay empty. REQUIRES: `request` passed check_messages() and holds no
// images, tasks, reminders or calls.
RenderedPrompt render_v3(const ChatRequest& request, V3Thinking thinking);

}  // namespace locket::chat
