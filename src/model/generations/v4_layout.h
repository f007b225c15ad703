// The memory of a V4 model as a KvLayout: CSA layers have a stream of rows and one of index keys, a
// row per 4 tokens; HCA layers a stream of rows, one per 128; every layer a ring of its window, and
// CSA layers one more, of what the next block needs of the block before. All rings are kept: all
// layers see every token.
#pragma once

#include <cstdint>
#include <vector>

#include "model/block_compressor.h"
#include "model/generations/v4_config.h"
#include "model/language_model.h"
#include "model/numerics_mode.h"
#include "model/step.h"

namespace locket::model {

struct V4Memory {
  ModelOutline outline;
  MemoryFormats formats;
  std::vector<LayerMemory> layers;  // [layer_count]
  std::vector<int> block_rings;     // [layer_count]: -1 where blocks do not overlap
};

// The float32 tail is for comparison with code that does not round the rotated values of a row.
enum class V4RowTail { kBf16, kF32 };

V4Memory make_v4_memory(const V4Config& config, NumericsMode mode,
                        V4RowTail tail = V4RowTail::kBf16);

// The compressors of a layer: of its rows, and of the index keys of a CSA layer.
BlockCompressorConfig v4_row_compressor(const V4Config& config, std::int64_t layer);
BlockCompressorConfig v4_key_compressor(const V4Config& config, std::int64_t layer,
                                        const Numerics& numerics);

}  // namespace locket::model
