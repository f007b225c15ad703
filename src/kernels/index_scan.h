// Scores of stored index keys for the queries of several positions:
// score[j] = sum over heads, ascending, of weight[h] * max(query[h] . key[j], 0), every sum in the
// order of sum_order.h. Official model.py, Indexer.
//
// Keys are read where they lie, as rows of a memory: a scan takes runs of consecutive rows. Fast
// kernels decode a block of keys once for all queries; where the codes of keys and queries allow
// it, they compute in integers, which changes no bit (cpu/index_scan.h says why).
//
// Everything here is thread-safe for different outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/index_scores.h"
#include "kernels/row_codec.h"
#include "tensor/aligned_buffer.h"

namespace locket::kernels {

// A query as whole numbers: value = number * 2^unit of its head.
struct IntegerQuery {
  static constexpr std::size_t kHeadsAtOnce = 32;

  std::size_t planes = 0;        // 0: it cannot be written so; 2: number = 8 * first + second
  std::size_t padded_heads = 0;  // a multiple of kHeadsAtOnce
  tensor::AlignedBuffer codes;   // int8 [planes][padded_heads][dim]; of 8 dims the even ones first
  std::vector<std::int32_t> sums;  // [planes][padded_heads], of the codes of a head
  std::vector<float> factors;      // [padded_heads], weight * 2^unit
};

// What a position asks with, arranged once for many keys. The spans must outlive it.
struct IndexQuery {
  std::size_t heads = 0;
  std::size_t dim = 0;
  std::span<const float> values;   // [heads, dim]
  std::span<const float> weights;  // [heads]
  IndexScoreRounding rounding = IndexScoreRounding::kF32;
  IntegerQuery integers;
};

// `query` with `integers` filled in if its values and weights allow it.
IndexQuery prepare_index_query(IndexQuery query);

// Consecutive stored keys.
struct KeyRun {
  const std::byte* rows = nullptr;  // [count] rows of row_bytes(format, dim), at any boundary
  std::size_t count = 0;
};

// scores[q][j] for every query and every key of the runs, counted through all runs.
struct IndexScan {
  RowFormat format = RowFormat::kFp4Index;
  std::span<const KeyRun> runs;
  std::span<const IndexQuery> queries;  // of the same heads and dim
  float* scores = nullptr;              // [queries][stride]
  std::size_t stride = 0;               // at least the keys of all runs

  std::size_t key_count() const {
    std::size_t count = 0;
    for (const KeyRun& run : runs) count += run.count;
    return count;
  }
};

void index_scan(const IndexScan& scan);

}  // namespace locket::kernels
