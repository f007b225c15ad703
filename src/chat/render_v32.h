// Renders a chat request to the prompt of V3.2. Turns do not merge; results of tools stand behind
// the answer that called them, in a block of their own, in the order of the calls; reasoning is
// written behind the last user message only. Pure function, thread-safe.
#pragma once

#include "chat/message.h"
#include "chat/rendered_prompt.h"

namespace locket::chat {

// `ids` and `system_ids` stay empty. REQUIRES: `request` passed check_messages() and holds no
// images, tasks or reminders.
RenderedPrompt render_v32(const ChatRequest& request);

}  // namespace locket::chat
