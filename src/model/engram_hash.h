// Engram: which rows of its hash tables a position reads. A position's token and the ones before it
// become classes (the token map), 2-grams to n-grams of classes become numbers, and every number is
// taken modulo one prime per head. Multipliers, primes and offsets follow from the config alone and
// are checked against the table sizes that the checkpoint states.
//
// A column is one (n-gram, head) pair: 2-gram heads first, then 3-gram heads, and so on. Row ids
// depend on the last max_ngram_size tokens only, so a resumed sequence needs no more than those.
// Immutable after create(), so every member is thread-safe; the spans it returns live as long as
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"

namespace locket::model {

// Stands for a token that no n-gram may contain (a position of an image): it and everything before
// it counts as padding.
inline constexpr std::int32_t kDeadToken = -1;

// The config keys behind the names are given in the messages of create().
struct EngramHashConfig {
  std::vector<std::int64_t> layer_ids;          // engram_layer_ids
  std::int64_t max_ngram_size = 0;              // engram_max_ngram_size
  std::int64_t head_count = 0;                  // engram_n_heads, per n-gram
  std::int64_t vocabulary_size = 0;             // engram_vocab_size: no prime is smaller
  std::int64_t compressed_vocabulary_size = 0;  // engram_compressed_vocab_size: classes
  std::int64_t pad_token_id = 0;                // engram_pad_token_id
  std::vector<std::int64_t> table_rows;         // engram_num_embeddings, one per layer id
};

class EngramHash {
 public:
  // `token_map` gives the class of every token id; it must have exactly the number of classes that
  // the config states. kBadCheckpoint names the key, the value found and the value that is right.
  [[nodiscard]] static Result<EngramHash> create(const EngramHashConfig& config,
                                                 std::vector<std::int32_t> token_map);

  // Row ids of one position in the table of layer_ids[engram_index]. `recent` holds the position's
  // own token first, then the ones before it, as far as the sequence goes and at most
  // max_ngram_size() of them; `out` [columns].
  // REQUIRES: 1 <= recent.size() <= max_ngram_size(), out.size() == columns(), every token is
  // kDeadToken or in [0, token_count()).
  void row_ids(std::size_t engram_index, std::span<const std::int32_t> recent,
               std::span<std::int64_t> out) const;

  // (max_ngram_size - 1) * head_count.
  std::size_t columns() const { return (max_ngram_size_ - 1) * head_count_; }
  std::size_t max_ngram_size() const { return max_ngram_size_; }
  // Number of Engram layers.
  std::size_t layer_count() const { return layers_.size(); }
  // Size of the token map: ids at or above it have no class.
  std::size_t token_count() const { return token_map_.size(); }

  // The constants, for tests and for `inspect`.
  std::span<const std::int64_t> multipliers(std::size_t engram_index) const;  // [max_ngram_size]
  std::span<const std::int64_t> primes(std::size_t engram_index) const;       // [columns]
  std::span<const std::int64_t> offsets(std::size_t engram_index) const;      // [columns]

 private:
  struct Layer {
    std::vector<std::int64_t> multipliers;  // [max_ngram_size], by look-back
    std::vector<std::int64_t> primes;       // [columns]
    std::vector<std::int64_t> offsets;      // [columns], first row of the column
  };

  EngramHash() = default;

  std::size_t max_ngram_size_ = 0;
  std::size_t head_count_ = 0;
  std::int64_t pad_class_ = 0;
  std::vector<std::int32_t> token_map_;  // [token ids]
  std::vector<Layer> layers_;
};

}  // namespace locket::model
