// A chat request as the prompt of a model, whatever its format. Plain data that owns its memory.
#pragma once

#include <cstddef>
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

// Sets `ids` and `system_ids` from the segments. kUnsupported names a control token that the
// tokenizer lacks.
[[nodiscard]] Result<RenderedPrompt> encode_prompt(RenderedPrompt prompt,
                                                   const tokenizer::Tokenizer& tokenizer);

}  // namespace locket::chat
