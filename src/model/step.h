// What the layers share during one step: which rows belong to which sequence, positions, where
// windows begin, the memory and the current selection.
//
// A step runs the newest positions of one or several sequences together, row by row: a weight is
// read once for all. No row ever looks at a row of another sequence.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "cache/kv_view.h"
#include "kernels/row_codec.h"
#include "model/rotary_table.h"
#include "model/selection.h"
#include "tensor/float_matrix.h"

namespace locket::model {

// Where a layer's bytes lie in the memory; -1: it has none there.
struct LayerMemory {
  int rows = -1;        // stream of compressed rows that this layer reads
  int index_keys = -1;  // stream of their index keys
  int ring = -1;        // its window ring
};

// Formats of the memory in the current numerics mode.
struct MemoryFormats {
  kernels::RowFormat rows = kernels::RowFormat::kFp4Main;
  kernels::RowFormat index_keys = kernels::RowFormat::kFp4Index;
  kernels::RowFormat window = kernels::RowFormat::kFp8;
};

// One sequence's share of a step: consecutive positions in consecutive rows.
struct StepPart {
  const cache::KvView* memory = nullptr;
  std::span<const std::int32_t> tokens = {};  // all ids of the sequence up to the last position
  std::int64_t first_position = 0;
  std::size_t count = 0;           // positions in this step; at least 1
  std::int64_t segment_start = 0;  // windows do not reach below it
  std::int64_t write_from = 0;     // rows of positions below are in the memory already
  std::size_t first_row = 0;       // set by Step
  // Why the sequence cannot go on. Its rows are carried along without meaning, nothing more of its
  // memory is read or written, and the others notice nothing.
  Status status = {};

  std::int64_t position(std::size_t row) const {
    return first_position + static_cast<std::int64_t>(row - first_row);
  }
};

struct Step {
  Step(std::vector<StepPart> step_parts, const MemoryFormats& memory_formats)
      : parts(std::move(step_parts)), formats(memory_formats) {
    for (std::size_t part = 0; part < parts.size(); ++part) {
      parts[part].first_row = part_of_row.size();
      part_of_row.insert(part_of_row.end(), parts[part].count, part);
    }
  }

  std::vector<StepPart> parts;
  MemoryFormats formats;
  std::vector<std::size_t> part_of_row;  // [rows]
  RotaryTable plain_rotary = {};         // [rows, rope / 2], layers without rows
  RotaryTable compressed_rotary = {};    // [rows, rope / 2], layers with rows
  RowSelection selection = {};
  CandidatePool pool = {};
  // By the number of the Engram layer: rows that were read ahead, [rows, columns * head_dim]; none
  // once they have been used.
  std::vector<tensor::FloatMatrix> engram_rows = {};

  std::size_t rows() const { return part_of_row.size(); }
  const StepPart& part(std::size_t row) const { return parts[part_of_row[row]]; }
  std::int64_t position(std::size_t row) const { return part(row).position(row); }
  // For observers, which watch one sequence at a time.
  std::int64_t first_position() const { return parts.front().first_position; }
};

}  // namespace locket::model
