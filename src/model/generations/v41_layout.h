// The memory of a V4.1 model as a KvLayout: for every KV source a stream of rows and one of index
// keys, for every layer a ring.
#pragma once

#include <vector>

#include "cache/kv_layout.h"
#include "model/generations/v41_config.h"
#include "model/language_model.h"
#include "model/numerics_mode.h"
#include "model/step.h"

namespace locket::model {

struct V41Memory {
  cache::KvLayout layout;
  MemoryFormats formats;
  std::vector<LayerMemory> layers;  // [layer_count]
};

V41Memory make_v41_memory(const V41Config& config, NumericsMode mode);

// The same for who knows no generation.
ModelOutline outline_v41(const V41Config& config, const V41Memory& memory);

}  // namespace locket::model
