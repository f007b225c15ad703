// Inputs for mechanisms alone: weights from plain numbers, random values, a memory of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <span>
#include <vector>

#include "base/worker_pool.h"
#include "cache/page_pool.h"
#include "cache/sequence_memory.h"
#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "model/step.h"
#include "tensor/float_matrix.h"

namespace locket::model {

// A context with threads of its own.
struct TestContext {
  explicit TestContext(NumericsMode mode, std::size_t threads = 1)
      : workers(threads), context{.workers = workers, .numerics = {.mode = mode}} {}

  WorkerPool workers;
  ForwardContext context;
};

// Uniform in [-1, 1], the same for a seed everywhere.
inline std::vector<float> random_floats(std::uint32_t seed, std::size_t count) {
  std::mt19937 engine(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(static_cast<std::int32_t>(engine())) * 0x1p-31f;
  }
  return values;
}

inline tensor::FloatMatrix float_matrix(std::size_t rows, std::size_t columns,
                                        std::span<const float> values) {
  tensor::FloatMatrix matrix(rows, columns);
  std::ranges::copy(values, matrix.values().begin());
  return matrix;
}

inline tensor::FloatMatrix random_matrix(std::uint32_t seed, std::size_t rows,
                                         std::size_t columns) {
  return float_matrix(rows, columns, random_floats(seed, rows * columns));
}

// Float32 weights.
inline kernels::WeightMatrix weight_matrix(const tensor::FloatMatrix& values) {
  auto packed = kernels::pack_weights({.format = kernels::WeightFormat::kF32,
                                       .rows = values.rows(),
                                       .columns = values.columns(),
                                       .values = std::as_bytes(values.values()),
                                       .scales = {}});
  EXPECT_TRUE(packed);
  return std::move(*packed);
}

inline kernels::WeightMatrix random_weights(std::uint32_t seed, std::size_t rows,
                                            std::size_t columns) {
  return weight_matrix(random_matrix(seed, rows, columns));
}

// `diagonal` in the main diagonal, zero elsewhere.
inline kernels::WeightMatrix diagonal_weights(std::size_t size, float diagonal) {
  tensor::FloatMatrix values(size, size);
  for (std::size_t i = 0; i < size; ++i) values.row(i)[i] = diagonal;
  return weight_matrix(values);
}

// Rows [first, last) of a matrix.
inline tensor::FloatMatrix rows_of(const tensor::FloatMatrix& matrix, std::size_t first,
                                   std::size_t last) {
  return float_matrix(
      last - first, matrix.columns(),
      matrix.values().subspan(first * matrix.columns(), (last - first) * matrix.columns()));
}

// Positions first, first + step, ... (count of them).
inline std::vector<std::int64_t> positions_from(std::int64_t first, std::int64_t step,
                                                std::size_t count) {
  std::vector<std::int64_t> positions(count);
  for (std::size_t i = 0; i < count; ++i) {
    positions[i] = first + static_cast<std::int64_t>(i) * step;
  }
  return positions;
}

// A memory with room for `tokens` tokens.
struct TestMemory {
  TestMemory(cache::KvLayout layout_of_test, std::int64_t tokens)
      : layout(std::move(layout_of_test)),
        pool(layout.page_bytes(), std::uint64_t{1} << 30),
        sequence(layout, pool) {
    EXPECT_TRUE(sequence.reserve_tokens(tokens));
  }

  cache::KvView view() { return sequence.view(); }

  cache::KvLayout layout;
  cache::PagePool pool;
  cache::SequenceMemory sequence;
};

}  // namespace locket::model
