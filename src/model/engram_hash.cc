#include "model/engram_hash.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "model/numpy_random.h"

namespace locket::model {
namespace {

constexpr std::int64_t kSeedFactor = 10007;

// Bounds of what create() takes, far above any release: they keep a hostile config from costing
// minutes, and the multiplier bound above 2^32.
constexpr std::int64_t kMaxLayerId = 1 << 20;
constexpr std::int64_t kMaxNgramSize = 16;
constexpr std::int64_t kMaxHeads = 256;
constexpr std::int64_t kMaxVocabularySize = std::int64_t{1} << 32;
constexpr std::int64_t kMaxClasses = std::int64_t{1} << 28;

Status check_range(std::string_view key, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return {};
  return fail(ErrorCode::kBadCheckpoint,
              fmt::format("{} is {}, must be {} to {}", key, value, low, high));
}

Status check_layer_ids(const EngramHashConfig& config) {
  if (config.layer_ids.empty()) {
    return fail(ErrorCode::kBadCheckpoint, "engram_layer_ids is empty, must name a layer");
  }
  for (std::size_t i = 0; i < config.layer_ids.size(); ++i) {
    LOCKET_TRY_STATUS(
        check_range(fmt::format("engram_layer_ids[{}]", i), config.layer_ids[i], 0, kMaxLayerId));
    const auto earlier = config.layer_ids.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::find(config.layer_ids.begin(), earlier, *earlier) != earlier) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("engram_layer_ids names layer {} twice", *earlier));
    }
  }
  if (config.table_rows.size() != config.layer_ids.size()) {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("engram_num_embeddings has {} entries, engram_layer_ids has {}",
                            config.table_rows.size(), config.layer_ids.size()));
  }
  return {};
}

Status check_token_map(const EngramHashConfig& config, std::span<const std::int32_t> token_map) {
  std::int64_t classes = 0;
  for (std::size_t token = 0; token < token_map.size(); ++token) {
    if (token_map[token] < 0 || token_map[token] > classes) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("the token map gives token {} the class {}, must be 0 to {}: classes "
                              "are numbered in first-seen order",
                              token, token_map[token], classes));
    }
    classes = std::max(classes, std::int64_t{token_map[token]} + 1);
  }
  if (classes != config.compressed_vocabulary_size) {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("engram_compressed_vocab_size is {}, but the token map of the {} "
                            "tokenizer entries has {} classes",
                            config.compressed_vocabulary_size, token_map.size(), classes));
  }
  return check_range("engram_pad_token_id", config.pad_token_id, 0,
                     static_cast<std::int64_t>(token_map.size()) - 1);
}

Status check_config(const EngramHashConfig& config, std::span<const std::int32_t> token_map) {
  LOCKET_TRY_STATUS(check_layer_ids(config));
  LOCKET_TRY_STATUS(check_range("engram_max_ngram_size", config.max_ngram_size, 2, kMaxNgramSize));
  LOCKET_TRY_STATUS(check_range("engram_n_heads", config.head_count, 1, kMaxHeads));
  LOCKET_TRY_STATUS(
      check_range("engram_vocab_size", config.vocabulary_size, 2, kMaxVocabularySize));
  LOCKET_TRY_STATUS(check_range("engram_compressed_vocab_size", config.compressed_vocabulary_size,
                                1, kMaxClasses));
  return check_token_map(config, token_map);
}

bool is_prime(std::int64_t value) {
  if (value < 4) return value > 1;
  if (value % 2 == 0) return false;
  for (std::int64_t divisor = 3; divisor * divisor <= value; divisor += 2) {
    if (value % divisor == 0) return false;
  }
  return true;
}

// Odd, and so small that class * multiplier stays below 2^63 for every class.
std::vector<std::int64_t> draw_multipliers(const EngramHashConfig& config, std::int64_t layer) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  const auto bound = static_cast<std::uint64_t>(kLargest / config.compressed_vocabulary_size / 2);
  NumpyRandom random(static_cast<std::uint64_t>(kSeedFactor * layer));
  std::vector<std::int64_t> multipliers(static_cast<std::size_t>(config.max_ngram_size));
  for (std::int64_t& multiplier : multipliers) {
    multiplier = static_cast<std::int64_t>(random.below(bound)) * 2 + 1;
  }
  return multipliers;
}

}  // namespace

Result<EngramHash> EngramHash::create(const EngramHashConfig& config,
                                      std::vector<std::int32_t> token_map) {
  LOCKET_TRY_STATUS(check_config(config, token_map));
  EngramHash hash;
  hash.max_ngram_size_ = static_cast<std::size_t>(config.max_ngram_size);
  hash.head_count_ = static_cast<std::size_t>(config.head_count);
  hash.pad_class_ = token_map[static_cast<std::size_t>(config.pad_token_id)];
  hash.token_map_ = std::move(token_map);

  std::int64_t candidate = config.vocabulary_size;
  for (std::size_t i = 0; i < config.layer_ids.size(); ++i) {
    Layer layer;
    layer.multipliers = draw_multipliers(config, config.layer_ids[i]);
    std::int64_t rows = 0;
    for (std::size_t column = 0; column < hash.columns(); ++column) {
      while (!is_prime(candidate)) ++candidate;
      layer.primes.push_back(candidate);
      layer.offsets.push_back(rows);
      rows += candidate;
      ++candidate;  // no prime is used twice, in no layer
    }
    if (rows != config.table_rows[i]) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("engram_num_embeddings[{}] is {}, but the {} primes of layer {} from "
                              "engram_vocab_size {} on sum to {}",
                              i, config.table_rows[i], hash.columns(), config.layer_ids[i],
                              config.vocabulary_size, rows));
    }
    hash.layers_.push_back(std::move(layer));
  }
  return hash;
}

void EngramHash::row_ids(std::size_t engram_index, std::span<const std::int32_t> recent,
                         std::span<std::int64_t> out) const {
  LOCKET_CHECK(engram_index < layers_.size());
  LOCKET_CHECK(!recent.empty() && recent.size() <= max_ngram_size_);
  LOCKET_CHECK(out.size() == columns());
  const Layer& layer = layers_[engram_index];
  bool alive = true;
  std::int64_t rolling = 0;
  std::size_t column = 0;
  for (std::size_t back = 0; back < max_ngram_size_; ++back) {
    alive = alive && back < recent.size() && recent[back] != kDeadToken;
    std::int64_t token_class = pad_class_;
    if (alive) {
      LOCKET_CHECK(recent[back] >= 0 && static_cast<std::size_t>(recent[back]) < token_count());
      token_class = token_map_[static_cast<std::size_t>(recent[back])];
    }
    rolling ^= token_class * layer.multipliers[back];
    if (back == 0) continue;
    for (std::size_t head = 0; head < head_count_; ++head, ++column) {
      out[column] = rolling % layer.primes[column] + layer.offsets[column];
    }
  }
}

std::span<const std::int64_t> EngramHash::multipliers(std::size_t engram_index) const {
  LOCKET_CHECK(engram_index < layers_.size());
  return layers_[engram_index].multipliers;
}

std::span<const std::int64_t> EngramHash::primes(std::size_t engram_index) const {
  LOCKET_CHECK(engram_index < layers_.size());
  return layers_[engram_index].primes;
}

std::span<const std::int64_t> EngramHash::offsets(std::size_t engram_index) const {
  LOCKET_CHECK(engram_index < layers_.size());
  return layers_[engram_index].offsets;
}

}  // namespace locket::model
