#include "model/generations/v41_layout.h"

namespace locket::model {

V41Memory make_v41_memory(const V41Config& config, NumericsMode mode) {
  V41Memory memory;
  if (!Numerics{.mode = mode}.quantizes_memory()) {
    memory.formats = {.rows = kernels::RowFormat::kF32,
                      .index_keys = kernels::RowFormat::kF32,
                      .window = kernels::RowFormat::kF32};
  }
  const auto dim = static_cast<std::size_t>(config.head_dim);
  const auto index_dim = static_cast<std::size_t>(config.index_head_dim);
  std::vector<LayerMemory> sources(config.layers.size());
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
    const auto at = static_cast<std::size_t>(layer);
    const LayerRole& role = config.layers[at];
    LayerMemory& place = sources[at];
    if (role.writes_rows) {
      place.rows = static_cast<int>(memory.layout.streams.size());
      memory.layout.streams.push_back({.name = "rows",
                                       .layer = layer,
                                       .tokens_per_row = role.ratio,
                                       .row_bytes = row_bytes(memory.formats.rows, dim)});
      place.index_keys = static_cast<int>(memory.layout.streams.size());
      memory.layout.streams.push_back({.name = "index keys",
                                       .layer = layer,
                                       .tokens_per_row = role.ratio,
                                       .row_bytes = row_bytes(memory.formats.index_keys, index_dim),
                                       .part = cache::PagePart::kKeys});
    } else if (role.kv_source >= 0) {
      place = sources[static_cast<std::size_t>(role.kv_source)];
    }
    place.ring = static_cast<int>(memory.layout.rings.size());
    memory.layout.rings.push_back({.layer = layer,
                                   .slots = config.sliding_window,
                                   .row_bytes = row_bytes(memory.formats.window, dim),
                                   .kind = layer < config.boundary
                                               ? cache::RingStream::Kind::kKept
                                               : cache::RingStream::Kind::kRebuilt});
  }
  memory.layers = std::move(sources);
  return memory;
}

ModelOutline outline_v41(const V41Config& config, const V41Memory& memory) {
  ModelOutline outline = {.shape = {.generation = "V4.1",
                                    .layer_count = config.layer_count,
                                    .hidden = config.hidden_size,
                                    .stream_count = config.stream_count,
                                    .vocabulary_size = config.vocabulary_size,
                                    .max_positions = config.max_positions,
                                    .bos_token_id = config.bos_token_id,
                                    .eos_token_id = config.eos_token_id,
                                    .boundary = config.boundary,
                                    .window = config.sliding_window},
                          .memory = {.layout = memory.layout}};
  const auto dim = static_cast<std::size_t>(config.head_dim);
  const RowEncoding row = {.format = memory.formats.rows, .width = dim};
  const RowEncoding key = {.format = memory.formats.index_keys,
                           .width = static_cast<std::size_t>(config.index_head_dim)};
  for (const cache::RowStream& stream : memory.layout.streams) {
    outline.memory.stream_rows.push_back(stream.part == cache::PagePart::kKeys ? key : row);
  }
  outline.memory.ring_rows.assign(memory.layout.rings.size(),
                                  {.format = memory.formats.window, .width = dim});
  return outline;
}

}  // namespace locket::model
