// Work on the rows of a step, shared out among the threads. What a row gives never depends on it.
#pragma once

#include <cstddef>

#include "base/worker_pool.h"
#include "model/forward_context.h"

namespace locket::model {

// About how many multiply-adds a normed value is worth.
inline constexpr std::size_t kWorkPerNormedValue = 8;

// Calls function(row) for every row; `row_work` is what one costs, in multiply-adds.
template <class Function>
void for_each_row(const ForwardContext& context, std::size_t rows, std::size_t row_work,
                  const Function& function) {
  context.workers.parallel_for(rows, WorkerPool::grain_for(row_work),
                               [&](std::size_t begin, std::size_t end) {
                                 for (std::size_t row = begin; row < end; ++row) function(row);
                               });
}

}  // namespace locket::model
