// What a model may have sampled for a text: other tokens than the tokenizer would make of it.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "chat/markup.h"
#include "tokenizer/tokenizer.h"

namespace locket::test_support {

// The control tokens of thinking and tool markup where the text spells them, and a token for every
// single byte between them.
inline std::vector<tokenizer::TokenId> sampled_ids(const tokenizer::Tokenizer& tokenizer,
                                                   std::string_view text) {
  std::vector<tokenizer::TokenId> ids;
  while (!text.empty()) {
    const auto begins = [text](std::string_view token) { return text.starts_with(token); };
    const auto control = std::ranges::find_if(chat::kTemplateTokens, begins);
    if (control != chat::kTemplateTokens.end()) {
      ids.push_back(tokenizer.find_added_token(*control).value());
      text.remove_prefix(control->size());
      continue;
    }
    // A whole character: half of one would be repaired.
    std::size_t bytes = 1;
    while (bytes < text.size() && (static_cast<unsigned char>(text[bytes]) & 0xC0U) == 0x80U)
      ++bytes;
    const std::vector<tokenizer::TokenId> run = tokenizer.encode_text(text.substr(0, bytes));
    ids.insert(ids.end(), run.begin(), run.end());
    text.remove_prefix(bytes);
  }
  return ids;
}

inline void append_ids(std::vector<tokenizer::TokenId>& ids,
                       const std::vector<tokenizer::TokenId>& more) {
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace locket::test_support
