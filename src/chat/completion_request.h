// A request of the legacy completions format: a text that the model continues as it is, without any
// chat format, or, with a suffix, the text between two. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/message.h"
#include "chat/rendered_prompt.h"
#include "tokenizer/tokenizer.h"

namespace locket::chat {

struct CompletionRequest {
  std::string prompt;
  std::vector<std::int32_t> prompt_ids;  // in place of `prompt`, if there are any
  std::string suffix;                    // not empty: fill in between prompt and suffix
  bool is_echo = false;                  // the answer begins with the prompt
  // All that is no prompt: sampling, limits, stop strings, streaming, who asks. It has no messages
  // and no tools, and thinking is off.
  ChatRequest options;
};

// kBadRequest names the field, the value and what would be right; kUnsupported for several prompts
// in one request.
[[nodiscard]] Result<CompletionRequest> parse_completion_request(std::string_view json);

// A text begins as every document does, with the token for that if the tokenizer has one; what it
// spells stays plain text. Token ids stay as they are. kUnsupported if the tokenizer has no tokens
// to fill in with; kBadRequest for ids that it does not have, and if nothing is left to read.
[[nodiscard]] Result<RenderedPrompt> render_completion(const CompletionRequest& request,
                                                       const tokenizer::Tokenizer& tokenizer);

}  // namespace locket::chat
