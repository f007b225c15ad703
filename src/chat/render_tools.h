// Tool markup in prompts: the text that shows the tools, and the block of calls of an old assistant
// message. Names, descriptions, schemas and arguments come from outside and stay plain text.
// Thread-safe as long as the writer is not shared.
#pragma once

#include <span>
#include <string>

#include "chat/message.h"
#include "chat/reply.h"
#include "chat/segments.h"

namespace locket::chat {

// One tool as the tools text shows it: a JSON object and a newline.
std::string tool_line(const Tool& tool);

// The whole tools text, ending with one newline.
void render_tools(std::span<const Tool* const> tools, Markup markup, SegmentWriter& out);

// The call block with the two newlines before it. REQUIRES: `calls` is not empty.
void render_calls(std::span<const ToolCall> calls, Markup markup, SegmentWriter& out);

}  // namespace locket::chat
