// The multiply-adds of a DeepSeek-V4.1 model, computed from its configuration alone as the list of
// operations that V41Model executes. Their sums equal what its counters (WorkCount) count in a real
// run, whatever the slices of the prompt; tests hold the two against each other.
//
// As in WorkCount: products with weights, query and probability products over the slots in use, and
// index scores. Sums over streams, gates, norms and rotations are not counted. A scan of index keys
// counts only where there is something to choose.
//
// Plain functions; thread-safe. Counts are exact below 2^64: texts up to 2^24 tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/forward_context.h"
#include "model/generations/v41_config.h"
#include "model/generations/v41_parameters.h"

namespace locket::model {

// One operation over the positions of a run: `count` products of a [rows, columns] matrix with a
// vector. For attention, count is the slots in use, twice (as keys and as values), rows the heads;
// for the index scan, count is the keys scored.
struct WorkOperation {
  std::string_view name;  // "wq_a"
  ModelPart part = ModelPart::kCount;
  std::int64_t layer = -1;  // -1: output head
  std::uint64_t count = 0;
  std::uint64_t rows = 0;
  std::uint64_t columns = 0;

  std::uint64_t multiply_adds() const { return count * rows * columns; }
};

struct PositionRange {
  std::int64_t first = 0;
  std::int64_t count = 0;
};

// V41Model::encode() of these positions: encoder layers, then Engram and row writers of the
// boundary.
std::vector<WorkOperation> encoder_work(const V41Config& config, PositionRange positions);

// V41Model::decode() of these positions, windows cut at `segment_start`.
std::vector<WorkOperation> decoder_work(const V41Config& config, PositionRange positions,
                                        std::int64_t segment_start);

// V41Model::logits() of this many positions.
WorkOperation head_work(const V41Config& config, std::int64_t position_count);

// A prompt whose last `replayed` tokens go through the decoder; logits of the last one.
// REQUIRES: 1 <= replayed <= prompt_tokens.
std::vector<WorkOperation> prompt_work(const V41Config& config, std::int64_t prompt_tokens,
                                       std::int64_t replayed);

// One generated token at `position`, fed through all layers, with its logits.
std::vector<WorkOperation> generated_token_work(const V41Config& config, std::int64_t position,
                                                std::int64_t segment_start);

WorkCount sum_work(std::span<const WorkOperation> operations);

}  // namespace locket::model
