// What the layers share during one step: positions, where windows begin, the memory and the current
// selection.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cache/kv_view.h"
#include "model/rotary_table.h"
#include "model/row_codec.h"
#include "model/selection.h"

namespace locket::model {

// Where a layer's bytes lie in the memory; -1: it has none there.
struct LayerMemory {
  int rows = -1;        // stream of compressed rows that this layer reads
  int index_keys = -1;  // stream of their index keys
  int ring = -1;        // its window ring
};

// Formats of the memory in the current numerics mode.
struct MemoryFormats {
  RowFormat rows = RowFormat::kFp4Main;
  RowFormat index_keys = RowFormat::kFp4Index;
  RowFormat window = RowFormat::kFp8;
};

struct Step {
  const cache::KvView& memory;
  MemoryFormats formats;
  std::int64_t first_position = 0;
  std::size_t count = 0;               // positions in this step
  std::int64_t segment_start = 0;      // windows do not reach below it
  std::int64_t write_from = 0;         // rows of positions below are in the memory already
  RotaryTable plain_rotary = {};       // [count, rope / 2], layers without rows
  RotaryTable compressed_rotary = {};  // [count, rope / 2], layers with rows
  RowSelection selection = {};
  CandidatePool pool = {};

  std::int64_t position(std::size_t index) const {
    return first_position + static_cast<std::int64_t>(index);
  }
};

}  // namespace locket::model
