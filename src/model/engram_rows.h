// Engram rows of a step, read ahead of its forward pass: they follow from token ids alone. Every
// row of a table is read once, however many positions want it, and rows from disk are read many at
// a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "base/task_pool.h"
#include "base/worker_pool.h"
#include "model/engram.h"
#include "tensor/float_matrix.h"

namespace locket::model {

// What the positions of a step want of one table. REQUIRES: ids of the table.
struct EngramLookup {
  const EngramTable* table = nullptr;
  std::vector<std::int64_t> ids;  // [positions, columns]
};

struct EngramRows {
  std::vector<tensor::FloatMatrix> rows;  // [lookups] of [positions, columns * head_dim]
  std::vector<Status> statuses;           // [positions]: why a position's rows are not there
};

// `readers` serve the tables that are not in memory; null: the workers do. REQUIRES: all lookups
// have as many ids.
EngramRows gather_engram_rows(std::span<const EngramLookup> lookups, std::size_t columns,
                              WorkerPool& workers, TaskPool* readers);

}  // namespace locket::model
