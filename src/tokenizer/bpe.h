// Byte-pair encoding of one piece: bytes become ids, and the neighbours with the lowest merge rank
// become one, leftmost first, until no merge applies. O(n log n) for a piece of n bytes. Immutable
// and thread-safe; every caller brings its own Scratch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocabulary.h"

namespace locket::tokenizer {

class BytePairEncoder {
 public:
  // Buffers that encode() uses; kept between calls to save allocations.
  class Scratch {
   private:
    friend class BytePairEncoder;
    struct Symbol {
      TokenId id;
      std::uint32_t rank;  // of the merge with the next symbol
      std::uint32_t previous;
      std::uint32_t next;
    };
    std::vector<Symbol> symbols_;
    std::vector<std::uint64_t> queue_;  // heap of (rank << 32 | place), lowest first
  };

  // kBadCheckpoint if a byte that UTF-8 uses has no entry and that is not allowed, or a merge names
  // a piece that has none.
  [[nodiscard]] static Result<BytePairEncoder> build(
      const std::vector<Merge>& merges, const BaseIndex& index,
      MissingBytes missing_bytes = MissingBytes::kRefused);

  // Appends the ids of `piece`; bytes without an entry give none. REQUIRES: valid UTF-8.
  void encode(std::string_view piece, Scratch& scratch, std::vector<TokenId>& ids) const;

 private:
  struct Rule {
    std::uint64_t pair;  // left << 32 | right
    std::uint32_t rank;
    TokenId merged;
  };

  // Open addressing: a look-up is one cache line for most pairs, and there are many per text.
  Rule& slot_of(std::uint64_t pair);
  const Rule* find(TokenId left, TokenId right) const;
  std::uint32_t rank_of(TokenId left, TokenId right) const;
  void offer(std::uint32_t place, Scratch& scratch) const;
  void merge_at(std::uint32_t place, Scratch& scratch) const;

  std::array<TokenId, 256> id_of_byte_ = {};
  std::vector<Rule> rules_;  // a power of two, at most half full
};

}  // namespace locket::tokenizer
