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
  // Of 32 dims: those of a row, those that the query multiplies, and those with averaged values.
  std::size_t row_blocks;
  std::size_t key_blocks;
  std::size_t first_value_block;
  std::size_t value_blocks;
  // Dims of the last key block if other values follow them there, else 0.
  std::size_t mixed_dims;

  explicit PassShape(const AttentionInput& input)
      : lanes(round_up(input.heads, kTileLanes)),
        head_rows(round_up(input.heads, kValueHeads)),
        row_blocks(block_count(input.row_values())),
        key_blocks(block_count(input.head_dim)),
        first_value_block(input.value_first / kBlockDims),
        value_blocks(block_count(input.value_first + input.out_dim()) - first_value_block),
        mixed_dims(input.row_values() > input.head_dim ? input.head_dim % kBlockDims : 0) {}

  std::size_t query() const { return key_blocks * query_block(); }
  std::size_t query_block() const { return kBlockDims * lanes; }
  std::size_t rows() const { return row_blocks * kBlockFloats; }
  std::size_t mixed_block() const { return mixed_dims == 0 ? 0 : kBlockFloats; }
  std::size_t parts() const { return kBlockDims * head_rows; }
  std::size_t sums() const { return value_blocks * parts(); }
  std::size_t all() const {
    return query() + rows() + mixed_block() + kScores + parts() + sums() + 3 * lanes;
  }

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
    for (std::size_t block = 0; block < shape.key_blocks; ++block) {
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
        mixed_(scratch_.take(shape_.mixed_block())),
        scores_(scratch_.take(PassShape::kScores)),
        parts_(scratch_.take(shape_.parts())),
        sums_(scratch_.take(shape_.sums())),
        states_{.maxima = scratch_.take(shape_.lanes),
                .denominators = scratch_.take(shape_.lanes),
                .shrinks = scratch_.take(shape_.lanes)} {}

  void run(std::span<float> out) {
    prefetch_rows(tile(0), input_.row_values());
    pack_query(input_, shape_, query_);
    std::fill_n(sums_, shape_.sums(), 0.0f);
    std::fill_n(states_.maxima, shape_.lanes, kFirstMaximum);
    std::fill_n(states_.denominators, shape_.lanes, 0.0f);
    for (std::size_t first = 0; first < input_.rows.size(); first += kAttentionTile) {
      add_tile(tile(first), tile(first + kAttentionTile));
    }
    for (std::size_t h = 0; h < input_.heads; ++h) close_sum(h);
    math_.divide({.sums = sums_,
                  .head_rows = shape_.head_rows,
                  .heads = input_.heads,
                  .first_dim = input_.value_first % kBlockDims,
                  .head_dim = input_.out_dim(),
                  .rounding = input_.rounding},
                 states_.denominators, out.data());
  }

 private:
  std::span<const AttentionRow> tile(std::size_t first) const {
    const std::size_t begin = std::min(first, input_.rows.size());
    return input_.rows.subspan(begin, std::min(kAttentionTile, input_.rows.size() - begin));
  }

  void close_sum(std::size_t head) {
    float& denominator = states_.denominators[head];
    if (!input_.sink.empty()) {
      denominator += exp_value(input_.sink[head] - states_.maxima[head]);
    } else if (denominator == 0.0f) {
      denominator = 1.0f;
    }
  }

  void add_tile(std::span<const AttentionRow> rows, std::span<const AttentionRow> ahead) {
    if (std::all_of(rows.begin(), rows.end(), is_empty)) return add_nothing();
    decoding_.decode(rows, input_.row_values(), rows_);
    if (shape_.mixed_dims > 0) separate_mixed(round_up(rows.size(), kSlotBlock));
    score(rows, ahead);
    math_.weigh({.scores = scores_,
                 .rows = rows,
                 .lanes = shape_.lanes,
                 .scale = input_.scale,
                 .rounding = input_.rounding},
                states_);
    add_values(rows);
  }

  // The last key block without the values behind the key: -0 as behind the last dim of a row.
  void separate_mixed(std::size_t slots) {
    const float* block = rows_ + (shape_.key_blocks - 1) * kBlockFloats;
    for (std::size_t slot = 0; slot < slots; ++slot) {
      float* to =
          std::copy_n(block + slot * kBlockDims, shape_.mixed_dims, mixed_ + slot * kBlockDims);
      std::fill_n(to, kBlockDims - shape_.mixed_dims, -0.0f);
    }
  }

  const float* key_block(std::size_t block) const {
    const bool is_mixed = shape_.mixed_dims > 0 && block + 1 == shape_.key_blocks;
    return is_mixed ? mixed_ : rows_ + block * kBlockFloats;
  }

  // What a tile without rows does to the sums: -0 becomes +0.
  void add_nothing() {
    std::for_each(sums_, sums_ + shape_.sums(), [](float& sum) { sum += 0.0f; });
  }

  void score(std::span<const AttentionRow> rows, std::span<const AttentionRow> ahead) {
    const FlushScope flush;
    for (std::size_t block = 0; block < shape_.key_blocks; ++block) {
      const std::size_t next = ahead.size() * block / shape_.key_blocks;
      const std::size_t end = ahead.size() * (block + 1) / shape_.key_blocks;
      products_.multiply_keys(
          {.keys = key_block(block),
           .query = query_ + block * shape_.query_block(),
           .lane_groups = shape_.lanes / kTileLanes,
           .start = block == 0 ? KeyProduct::Start::kZero : KeyProduct::Start::kScores,
           .rows = rows,
           .scores = scores_,
           .ahead = ahead.subspan(next, end - next),
           .row_width = input_.row_values()});
    }
  }

  void add_values(std::span<const AttentionRow> rows) {
    const auto eights = used_eights(rows);
    const float* values = rows_ + shape_.first_value_block * kBlockFloats;
    for (std::size_t block = 0; block < shape_.value_blocks; ++block) {
      {
        const FlushScope flush;
        products_.multiply_values({.values = values + block * kBlockFloats,
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
  float* query_;   // [key_blocks][32][lanes]
  float* rows_;    // [row_blocks][kBlockFloats], decoded
  float* mixed_;   // [kBlockFloats], if there is a mixed block
  float* scores_;  // [64][kMostHeads], then weights
  float* parts_;   // [head_rows][32]
  float* sums_;    // [value_blocks][head_rows][32]
  HeadStates states_;
};

}  // namespace

void attend(InstructionSet set, const AttentionInput& input, std::span<float> out) {
  for (std::size_t first = 0; first < input.heads; first += kMostHeads) {
    AttentionInput part = input;
    part.heads = std::min(kMostHeads, input.heads - first);
    part.query = input.query.subspan(first * input.head_dim, part.heads * input.head_dim);
    if (!input.sink.empty()) part.sink = input.sink.subspan(first, part.heads);
    HeadPass(set, part).run(out.subspan(first * input.out_dim(), part.heads * input.out_dim()));
  }
}

}  // namespace locket::kernels::cpu
