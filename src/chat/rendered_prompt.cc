#include "chat/rendered_prompt.h"

#include <span>

namespace locket::chat {

Result<RenderedPrompt> encode_prompt(RenderedPrompt prompt, const tokenizer::Tokenizer& tokenizer) {
  const std::span<const Segment> segments = prompt.segments;
  LOCKET_TRY(prompt.ids, encode_segments(segments.first(prompt.system_segments), tokenizer));
  prompt.system_ids = prompt.ids.size();
  LOCKET_TRY(const std::vector<tokenizer::TokenId> rest,
             encode_segments(segments.subspan(prompt.system_segments), tokenizer));
  prompt.ids.insert(prompt.ids.end(), rest.begin(), rest.end());
  return prompt;
}

}  // namespace locket::chat
