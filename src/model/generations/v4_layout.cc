#include "model/generations/v4_layout.h"

#include <utility>

#include "kernels/row_codec.h"

namespace locket::model {
namespace {

using kernels::RowFormat;

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

MemoryFormats formats_of(NumericsMode mode, V4RowTail tail) {
  if (!Numerics{.mode = mode}.quantizes_memory()) {
    return {.rows = RowFormat::kF32, .index_keys = RowFormat::kF32, .window = RowFormat::kF32};
  }
  const RowFormat rows = tail == V4RowTail::kBf16 ? RowFormat::kV4Fp8 : RowFormat::kV4Fp8F32;
  return {.rows = rows, .index_keys = RowFormat::kFp4Index, .window = rows};
}

class Builder {
 public:
  Builder(const V4Config& config, V4Memory& memory)
      : config_(config), memory_(memory), description_(memory.outline.memory) {}

  void build() {
    for (std::int64_t layer = 0; layer < config_.layer_count; ++layer) add_layer(layer);
  }

 private:
  void add_layer(std::int64_t layer) {
    const V4LayerKind kind = config_.kind(layer);
    LayerMemory place;
    if (kind != V4LayerKind::kWindow) {
      place.rows = add_stream(layer, "rows", {memory_.formats.rows, to_size(config_.head_dim)});
    }
    if (kind == V4LayerKind::kChosen) {
      place.index_keys = add_stream(layer, "index keys",
                                    {memory_.formats.index_keys, to_size(config_.index_head_dim)});
      description_.layout.streams.back().part = cache::PagePart::kKeys;
    }
    place.ring = add_ring(layer, config_.sliding_window,
                          {memory_.formats.window, to_size(config_.head_dim)});
    int block_ring = -1;
    if (kind == V4LayerKind::kChosen) {
      const std::size_t bytes = block_ring_bytes(v4_row_compressor(config_, layer)) +
                                block_ring_bytes(v4_key_compressor(config_, layer, {}));
      block_ring = add_ring(layer, v4_ratio(kind), {RowFormat::kF32, bytes / sizeof(float)});
    }
    memory_.layers.push_back(place);
    memory_.block_rings.push_back(block_ring);
  }

  int add_stream(std::int64_t layer, std::string name, const RowEncoding& row) {
    description_.layout.streams.push_back({.name = std::move(name),
                                           .layer = layer,
                                           .tokens_per_row = v4_ratio(config_.kind(layer)),
                                           .row_bytes = row_bytes(row.format, row.width)});
    description_.stream_rows.push_back(row);
    return static_cast<int>(description_.stream_rows.size()) - 1;
  }

  int add_ring(std::int64_t layer, std::int64_t slots, const RowEncoding& row) {
    description_.layout.rings.push_back(
        {.layer = layer, .slots = slots, .row_bytes = row_bytes(row.format, row.width)});
    description_.ring_rows.push_back(row);
    return static_cast<int>(description_.ring_rows.size()) - 1;
  }

  const V4Config& config_;
  V4Memory& memory_;
  MemoryDescription& description_;
};

}  // namespace

V4Memory make_v4_memory(const V4Config& config, NumericsMode mode, V4RowTail tail) {
  V4Memory memory;
  memory.formats = formats_of(mode, tail);
  memory.outline.shape = {.generation = "V4",
                          .layer_count = config.layer_count,
                          .hidden = config.hidden_size,
                          .vocabulary_size = config.vocabulary_size,
                          .max_positions = config.max_positions,
                          .bos_token_id = config.bos_token_id,
                          .eos_token_id = config.eos_token_id,
                          .boundary = config.layer_count,
                          .window = config.sliding_window};
  Builder(config, memory).build();
  return memory;
}

BlockCompressorConfig v4_row_compressor(const V4Config& config, std::int64_t layer) {
  const V4LayerKind kind = config.kind(layer);
  return {.layer = layer,
          .tokens = to_size(v4_ratio(kind)),
          .width = to_size(config.head_dim),
          .rope_dim = to_size(config.rope_dim),
          .norm_eps = config.rms_norm_eps,
          .overlap = kind == V4LayerKind::kChosen ? BlockCompressorConfig::Overlap::kBlockBefore
                                                  : BlockCompressorConfig::Overlap::kNone};
}

BlockCompressorConfig v4_key_compressor(const V4Config& config, std::int64_t layer,
                                        const Numerics& numerics) {
  BlockCompressorConfig compressor = v4_row_compressor(config, layer);
  compressor.width = to_size(config.index_head_dim);
  if (numerics.quantizes_memory()) {
    compressor.spread = BlockCompressorConfig::Spread::kHadamard;
  }
  return compressor;
}

}  // namespace locket::model
