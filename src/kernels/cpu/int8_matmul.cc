#include <algorithm>
#include <vector>

#include "kernels/cpu/int8_kernels.h"
#include "tensor/aligned_buffer.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kPanelLanes = 2;

// The groups of x from `group` on.
Int8Rows groups_from(const Int8Rows& x, std::size_t group) {
  Int8Rows rows = x;
  const std::size_t rows_before = group * x.token_stride;
  rows.codes += rows_before * kInt8GroupColumns;
  rows.scales += rows_before;
  rows.offsets += rows_before * kInt8GroupBlocks;
  return rows;
}

class Int8Multiplier {
 public:
  Int8Multiplier(const Int8Kernels& kernels, const Int8Part& part)
      : kernels_(kernels),
        part_(part),
        whole_chunks_(part.weights.column_groups() / kInt8GroupBlocks),
        tail_blocks_(part.weights.column_groups() % kInt8GroupBlocks) {}

  // Few tokens: weights are decoded in registers.
  void run_direct() {
    totals_.resize(part_.x.tokens * kInt8Lanes);
    for (std::size_t group = part_.first; group < part_.last; ++group) {
      std::fill(totals_.begin(), totals_.end(), 0.0f);
      multiply_rows({.tiles = tiles(group, 0),
                     .scales = scales(group, 0),
                     .chunks = whole_chunks_,
                     .x = part_.x,
                     .totals = totals_.data(),
                     .totals_stride = kInt8Lanes});
      if (tail_blocks_ != 0) {
        const Int8ChunkTail tail = make_tail(group);
        multiply_rows({.tiles = tail.tiles(),
                       .scales = tail.scales(),
                       .chunks = 1,
                       .x = groups_from(part_.x, whole_chunks_),
                       .totals = totals_.data(),
                       .totals_stride = kInt8Lanes});
      }
      store({.first_token = 0, .group = group, .lanes = 1});
    }
  }

  // Many tokens: a chunk of up to two row groups is decoded once and used for all of them.
  void run_panels(std::size_t first_token, std::size_t tokens) {
    if (panel_.size() == 0) panel_ = tensor::AlignedBuffer(kPanelLanes * kInt8PanelBytes);
    const Int8Rows x = part_.x.part(first_token, tokens);
    for (std::size_t group = part_.first; group < part_.last; group += kPanelLanes) {
      const Block block = {.first_token = first_token,
                           .group = group,
                           .lanes = std::min(kPanelLanes, part_.last - group)};
      totals_.assign(tokens * block.lanes * kInt8Lanes, 0.0f);
      for (std::size_t chunk = 0; chunk < whole_chunks_; ++chunk) {
        add_chunk(groups_from(x, chunk), block,
                  {.tiles = {tiles(group, chunk), tiles(group + block.lanes - 1, chunk)},
                   .scales = {scales(group, chunk), scales(group + block.lanes - 1, chunk)}});
      }
      if (tail_blocks_ != 0) add_tail(groups_from(x, whole_chunks_), block);
      store(block);
    }
  }

 private:
  struct Block {
    std::size_t first_token;
    std::size_t group;
    std::size_t lanes;
  };

  // One chunk of two row groups, or of one.
  struct Chunk {
    std::array<const std::byte*, kPanelLanes> tiles;
    std::array<const std::byte*, kPanelLanes> scales;
  };

  const std::byte* tiles(std::size_t group, std::size_t chunk) const {
    const std::size_t tile = group * part_.weights.column_groups() + chunk * kInt8GroupBlocks;
    return part_.weights.tiles.data() + tile * tile_bytes(WeightFormat::kFp4);
  }
  const std::byte* scales(std::size_t group, std::size_t chunk) const {
    const std::size_t tile = group * part_.weights.column_groups() + chunk * kInt8GroupBlocks;
    return part_.weights.scales.data() + tile * tile_scale_bytes(WeightFormat::kFp4);
  }
  Int8ChunkTail make_tail(std::size_t group) const {
    return {tiles(group, whole_chunks_), scales(group, whole_chunks_), tail_blocks_};
  }

  // As many tokens at a time as the kernels take.
  void multiply_rows(const Int8RowsProduct& all) const {
    Int8RowsProduct product = all;
    for (std::size_t done = 0; done < all.x.tokens; done += product.x.tokens) {
      product.x = all.x.part(done, std::min(kernels_.direct_tokens, all.x.tokens - done));
      product.totals = all.totals + done * all.totals_stride;
      kernels_.multiply_rows(product);
    }
  }

  void add_tail(const Int8Rows& x, const Block& block) {
    const Int8ChunkTail first = make_tail(block.group);
    const Int8ChunkTail second = make_tail(block.group + block.lanes - 1);
    add_chunk(
        x, block,
        {.tiles = {first.tiles(), second.tiles()}, .scales = {first.scales(), second.scales()}});
  }

  void add_chunk(const Int8Rows& x, const Block& block, const Chunk& chunk) {
    std::array<bool, kPanelLanes> folded = {};
    for (std::size_t lane = 0; lane < block.lanes; ++lane) {
      folded[lane] = kernels_.decode(chunk.tiles[lane], chunk.scales[lane],
                                     panel_.data() + lane * kInt8PanelBytes,
                                     factors_.data() + lane * kInt8Lanes);
    }
    if (folded[0] && folded[1]) return multiply_panels(x, block, 0, kPanelLanes);
    for (std::size_t lane = 0; lane < block.lanes; ++lane) {
      if (folded[lane]) {
        multiply_panels(x, block, lane, 1);
      } else {
        multiply_rows({.tiles = chunk.tiles[lane],
                       .scales = chunk.scales[lane],
                       .chunks = 1,
                       .x = x,
                       .totals = totals_.data() + lane * kInt8Lanes,
                       .totals_stride = block.lanes * kInt8Lanes});
      }
    }
  }

  void multiply_panels(const Int8Rows& x, const Block& block, std::size_t lane, std::size_t lanes) {
    kernels_.multiply_panel({.panel = panel_.data() + lane * kInt8PanelBytes,
                             .factors = factors_.data() + lane * kInt8Lanes,
                             .lane_groups = lanes,
                             .x = x,
                             .totals = totals_.data() + lane * kInt8Lanes,
                             .totals_stride = block.lanes * kInt8Lanes});
  }

  // Totals [tokens][lanes * 16] to their place; padded rows are dropped.
  void store(const Block& block) const {
    const std::size_t row = block.group * kInt8Lanes;
    const std::size_t width = block.lanes * kInt8Lanes;
    const std::size_t count = std::min(width, part_.weights.rows - row);
    float* out = part_.out + block.first_token * part_.out_stride + row;
    for (std::size_t at = 0; at < totals_.size(); at += width, out += part_.out_stride) {
      std::copy_n(totals_.data() + at, count, out);
    }
  }

  const Int8Kernels& kernels_;
  const Int8Part& part_;
  std::size_t whole_chunks_;
  std::size_t tail_blocks_;
  tensor::AlignedBuffer panel_;
  alignas(64) std::array<float, kPanelLanes* kInt8Lanes> factors_ = {};
  std::vector<float> totals_;
};

}  // namespace

Int8ChunkTail::Int8ChunkTail(const std::byte* tiles, const std::byte* scales, std::size_t blocks) {
  const std::size_t block_tile = tile_bytes(WeightFormat::kFp4);
  tiles_.fill(std::byte{0});
  std::copy_n(tiles, blocks * block_tile, tiles_.begin());
  // Blocks of zeros with the first block's scales, so that the span of the codes stays.
  for (std::size_t block = 0; block < kInt8GroupBlocks; ++block) {
    const std::byte* from = scales + (block < blocks ? block : 0) * kInt8Lanes;
    std::copy_n(from, kInt8Lanes,
                scales_.begin() + static_cast<std::ptrdiff_t>(block * kInt8Lanes));
  }
}

void int8_matmul_part(const Int8Kernels& kernels, const Int8Part& part) {
  Int8Multiplier multiplier(kernels, part);
  const std::size_t tokens = part.x.tokens;
  if (kernels.panel_from == 0 || tokens < kernels.panel_from) {
    if (tokens != 0) multiplier.run_direct();
    return;
  }
  kernels.begin_panels();
  for (std::size_t first = 0; first < tokens; first += kernels.token_block) {
    multiplier.run_panels(first, std::min(kernels.token_block, tokens - first));
  }
  kernels.end_panels();
}

}  // namespace locket::kernels::cpu
