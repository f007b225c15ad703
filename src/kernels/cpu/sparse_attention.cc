#include <algorithm>
#include <array>
#include <memory>
#include <xmmintrin.h>

#include "kernels/cpu/attention_math.h"
#include "kernels/cpu/attention_products.h"
#include "kernels/cpu/attention_rows.h"
#include "kernels/cpu/drivers.h"
#include "kernels/cpu/flush_scope.h"
#include "kernels/cpu/panel_packing.h"
#include "kernels/elementary.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

bool is_empty(const AttentionRow& row) { return row.empty(); }

// Floats of one pass, cut into pieces at 64-byte boundaries.
class Scratch {
 public:
  explicit Scratch(std::size_t floats)
      : lines_(std::make_unique_for_overwrite<Line[]>(floats / kLineFloats)) {}

  // REQUIRES: `count` is a multiple of 16.
  float* take(std::size_t count) {
    float* piece = lines_[used_ / kLineFloats].floats.data();
    used_ += count;
    return piece;
  }

 private:
  static constexpr std::size_t kLineFloats = 16;
  struct alignas(64) Line {
    std::array<float, kLineFloats> floats;
  };

  std::unique_ptr<Line[]> lines_;
  std::size_t used_ = 0;
};

// Sizes of the pieces, in floats.
struct PassShape {
  std::size_t lanes;      // heads, rounded up to vectors of 16
  std::size_t head_rows;  // heads, rounded up to what a value product takes
  std::size_t blocks;     // of 32 dims

  explicit PassShape(const AttentionInput& input)
      : lanes(round_up(input.heads, kTileLanes)),
        head_rows(round_up(input.heads, kValueHeads)),
        blocks(block_count(input.head_dim)) {}

  std::size_t query() const { return blocks * query_block(); }
  std::size_t query_block() const { return kBlockDims * lanes; }
  std::size_t rows() const { return blocks * kBlockFloats; }
  std::size_t parts() const { return kBlockDims * head_rows; }
  std::size_t sums() const { return blocks * parts(); }
  std::size_t all() const { return query() + rows() + kScores + parts() + sums() + 3 * lanes; }

  static constexpr std::size_t kScores = kAttentionTile * kMostHeads;
};

// Sixteen rows of 32 columns as columns, `stride` floats apart.
void store_transposed(const RowTile& tile, std::size_t stride, float* out) {
  for (std::size_t i = 0; i < kTileLanes / 4 * kGroupColumns / 4; ++i) {
    const std::size_t lane = i % (kTileLanes / 4) * 4;
    const std::size_t column = i / (kTileLanes / 4) * 4;
    __m128 rows[4];
    for (std::size_t r = 0; r < 4; ++r) rows[r] = _mm_loadu_ps(tile.row(lane + r) + column);
    _MM_TRANSPOSE4_PS(rows[0], rows[1], rows[2], rows[3]);
    for (std::size_t c = 0; c < 4; ++c) _mm_store_ps(out + (column + c) * stride + lane, rows[c]);
  }
}

// The query as [blocks][32 dims][lanes]; dims behind the last are zero.
void pack_query(const AttentionInput& input, const PassShape& shape, float* out) {
  for (std::size_t lane = 0; lane < shape.lanes; lane += kTileLanes) {
    for (std::size_t block = 0; block < shape.blocks; ++block) {
      const RowTile tile({.rows = input.query.data(),
                          .stride = input.head_dim,
                          .row_count = input.heads,
                          .columns = input.head_dim},
                         lane, block * kBlockDims);
      store_transposed(tile, shape.lanes, out + block * shape.query_block() + lane);
    }
  }
}

// Up to 64 heads: slots in tiles of 64; a tile is decoded once for all heads.
class HeadPass {
 public:
  HeadPass(InstructionSet set, const AttentionInput& input)
      : decoding_(row_decoding(set)),
        products_(attention_products(set)),
        math_(attention_math(set)),
        input_(input),
        shape_(input),
        scratch_(shape_.all()),
        query_(scratch_.take(shape_.query())),
        rows_(scratch_.take(shape_.rows())),
        scores_(scratch_.take(PassShape::kScores)),
        parts_(scratch_.take(shape_.parts())),
        sums_(scratch_.take(shape_.sums())),
        states_{.maxima = scratch_.take(shape_.lanes),
                .denominators = scratch_.take(shape_.lanes),
                .shrinks = scratch_.take(shape_.lanes)} {}

  void run(std::span<float> out) {
    prefetch_rows(tile(0), input_.head_dim);
    pack_query(input_, shape_, query_);
    std::fill_n(sums_, shape_.sums(), 0.0f);
    std::fill_n(states_.maxima, shape_.lanes, kFirstMaximum);
    std::fill_n(states_.denominators, shape_.lanes, 0.0f);
    for (std::size_t first = 0; first < input_.rows.size(); first += kAttentionTile) {
      add_tile(tile(first), tile(first + kAttentionTile));
    }
    for (std::size_t h = 0; h < input_.heads; ++h) {
      states_.denominators[h] += exp_value(input_.sink[h] - states_.maxima[h]);
    }
    math_.divide({.sums = sums_,
                  .head_rows = shape_.head_rows,
                  .heads = input_.heads,
                  .head_dim = input_.head_dim,
                  .rounding = input_.rounding},
                 states_.denominators, out.data());
  }

 private:
  std::span<const AttentionRow> tile(std::size_t first) const {
    const std::size_t begin = std::min(first, input_.rows.size());
    return input_.rows.subspan(begin, std::min(kAttentionTile, input_.rows.size() - begin));
  }

  void add_tile(std::span<const AttentionRow> rows, std::span<const AttentionRow> ahead) {
    if (std::all_of(rows.begin(), rows.end(), is_empty)) return add_nothing();
    decoding_.decode(rows, input_.head_dim, rows_);
    score(rows, ahead);
    math_.weigh({.scores = scores_,
                 .rows = rows,
                 .lanes = shape_.lanes,
                 .scale = input_.scale,
                 .rounding = input_.rounding},
                states_);
    add_values(rows);
  }

  // What a tile without rows does to the sums: -0 becomes +0.
  void add_nothing() {
    std::for_each(sums_, sums_ + shape_.sums(), [](float& sum) { sum += 0.0f; });
  }

  void score(std::span<const AttentionRow> rows, std::span<const AttentionRow> ahead) {
    const FlushScope flush;
    for (std::size_t block = 0; block < shape_.blocks; ++block) {
      const std::size_t next = ahead.size() * block / shape_.blocks;
      const std::size_t end = ahead.size() * (block + 1) / shape_.blocks;
      products_.multiply_keys(
          {.keys = rows_ + block * kBlockFloats,
           .query = query_ + block * shape_.query_block(),
           .lane_groups = shape_.lanes / kTileLanes,
           .start = block == 0 ? KeyProduct::Start::kZero : KeyProduct::Start::kScores,
           .rows = rows,
           .scores = scores_,
           .ahead = ahead.subspan(next, end - next),
           .head_dim = input_.head_dim});
    }
  }

  void add_values(std::span<const AttentionRow> rows) {
    const auto eights = used_eights(rows);
    for (std::size_t block = 0; block < shape_.blocks; ++block) {
      {
        const FlushScope flush;
        products_.multiply_values({.values = rows_ + block * kBlockFloats,
                                   .weights = scores_,
                                   .eights = eights,
                                   .heads = input_.heads,
                                   .parts = parts_});
      }
      math_.accumulate(
          {.sums = sums_ + block * shape_.parts(), .parts = parts_, .heads = shape_.head_rows},
          states_.shrinks);
    }
  }

  // A half of a tile without rows adds nothing: its sum is +0 and the total before it never -0.
  static std::array<std::size_t, 2> used_eights(std::span<const AttentionRow> rows) {
    std::array<std::size_t, 2> eights = {};
    for (std::size_t half = 0; half < eights.size(); ++half) {
      const std::size_t begin = std::min(rows.size(), half * kGroupColumns);
      const auto slots = rows.subspan(begin, std::min(kGroupColumns, rows.size() - begin));
      if (!std::all_of(slots.begin(), slots.end(), is_empty)) eights[half] = (slots.size() + 7) / 8;
    }
    return eights;
  }

  const RowDecoding& decoding_;
  const AttentionProducts& products_;
  const AttentionMath& math_;
  const AttentionInput& input_;
  PassShape shape_;
  Scratch scratch_;
  float* query_;   // [blocks][32][lanes]
  float* rows_;    // [blocks][kBlockFloats], decoded
  float* scores_;  // [64][kMostHeads], then weights
  float* parts_;   // [head_rows][32]
  float* sums_;    // [blocks][head_rows][32]
  HeadStates states_;
};

}  // namespace

void attend(InstructionSet set, const AttentionInput& input, std::span<float> out) {
  for (std::size_t first = 0; first < input.heads; first += kMostHeads) {
    AttentionInput part = input;
    part.heads = std::min(kMostHeads, input.heads - first);
    part.query = input.query.subspan(first * input.head_dim, part.heads * input.head_dim);
    part.sink = input.sink.subspan(first, part.heads);
    HeadPass(set, part).run(out.subspan(first * input.head_dim, part.heads * input.head_dim));
  }
}

}  // namespace locket::kernels::cpu
