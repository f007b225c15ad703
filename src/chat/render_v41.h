// Renders a chat request to the prompt of the V4.1 generation: turns, the effort line, tools,
// response format, the header of the answer, and where the parser of the answer starts. Pure
// functions, thread-safe; the result owns its memory.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "chat/reply.h"
#include "chat/segments.h"
#include "tokenizer/tokenizer.h"

namespace locket::chat {

struct RenderedPrompt {
  std::vector<Segment> segments;        // sampled ones without text, see show_sampled()
  std::vector<tokenizer::TokenId> ids;  // of the segments, in order
  // How much of them comes before the first message that is none of the system's: instructions,
  // tools, response format, effort. Another conversation begins with the same.
  std::size_t system_segments = 0;
  std::size_t system_ids = 0;
  std::vector<ImageSource> images;  // one per image placeholder, in the order of the prompt
  ParserStart parser;
};

// Segments, images and parser start; `ids` and `system_ids` stay empty. REQUIRES: `request` passed
// check_messages().
RenderedPrompt render_segments(const ChatRequest& request);

// The whole prompt. kUnsupported names a control token that the tokenizer lacks.
[[nodiscard]] Result<RenderedPrompt> render_v41(const ChatRequest& request,
                                                const tokenizer::Tokenizer& tokenizer);

}  // namespace locket::chat
