// Renders a chat request to the two formats whose turns are told apart by words: "User:" and
// "Assistant:" of V1 and V2, and ChatML, where control tokens stand around a role's name. Pure
// functions, thread-safe.
#pragma once

#include <string_view>

#include "chat/message.h"
#include "chat/rendered_prompt.h"

namespace locket::chat {

// `ids` and `system_ids` stay empty. REQUIRES (both): `request` passed check_messages() and holds
// no images, tasks, reminders or calls.
RenderedPrompt render_v1(const ChatRequest& request);

// `default_system`: instructions of a conversation that begins without any; may be empty.
RenderedPrompt render_chatml(const ChatRequest& request, std::string_view default_system);

}  // namespace locket::chat
