// Log probabilities of sampled tokens as JSON, in the two shapes that clients know. A probability
// of zero is -9999.0, since JSON has no infinity. Of the answer's tokens only those of its text
// count: markup, calls and the end are left out.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "server/reply_json.h"
#include "service/request_sink.h"

namespace locket::server {

// Chat: {"content":[...],"reasoning_content":[...]}, each null without tokens; "null" without any.
std::string chat_logprobs(std::span<const service::SampledToken> tokens);

// Completions: parallel lists, with offsets in characters of the whole text, also over the pieces
// of a stream. Not thread-safe.
class CompletionLogprobs {
 public:
  // `text_before`: what stands in front of the first token. `top`: how many alternatives were asked
  // for; 0: none are written.
  CompletionLogprobs(std::string_view text_before, std::size_t top);

  // Of the tokens that follow those given before; "null" if there are none.
  std::string take(std::span<const service::SampledToken> tokens);

 private:
  std::string alternatives(const service::SampledToken& token) const;

  std::size_t offset_ = 0;
  std::size_t top_ = 0;
};

}  // namespace locket::server
