// The added tokens: ids outside the merges, found by their spelling. Immutable, thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_json.h"

namespace locket::tokenizer {

// A part of a text: an added token, or plain text without one.
struct TextPart {
  std::string_view text;
  std::optional<TokenId> added_token;
};

class SpecialTokens {
 public:
  // REQUIRES: ids and spellings were checked by Vocabulary::build(). kBadCheckpoint if two tokens
  // share a spelling or an id.
  [[nodiscard]] static Result<SpecialTokens> build(std::vector<AddedToken> tokens);

  std::optional<TokenId> find(std::string_view spelling) const;
  bool is_added(TokenId id) const { return special_by_id_.contains(id); }
  bool is_special(TokenId id) const;

  // `text` as added tokens and the text between: leftmost first, the longest at a place; tokens
  // with the flag `normalized` only in what the others leave. Views into `text`; no part is empty.
  std::vector<TextPart> split(std::string_view text) const;

 private:
  struct SpellingHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  // Spellings of one matching pass.
  struct Pass {
    std::unordered_map<std::string, TokenId, SpellingHash, std::equal_to<>> ids;
    std::array<bool, 256> is_first_byte = {};
    std::vector<std::size_t> lengths;  // distinct, descending
  };

  static void append_parts(const Pass& pass, std::string_view text, std::vector<TextPart>& parts);
  static std::optional<TextPart> token_at(const Pass& pass, std::string_view text);

  std::array<Pass, 2> passes_;  // tokens without and with the flag `normalized`
  std::unordered_map<TokenId, bool> special_by_id_;
};

}  // namespace locket::tokenizer
