// The largest logit by the compact copy of the head against the whole head, as greedy decoding has
// it, on a head of the release's shape with random weights. Interleaved; medians and best.
//   greedy_head_bench [ROWS COLUMNS [RUNS]]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/worker_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/largest_product.h"
#include "measure.h"
#include "numerics/bf16.h"

namespace locket::kernels {
namespace {

struct Shape {
  std::size_t rows = 129280;
  std::size_t columns = 5120;
  std::size_t runs = 7;
};

// Sums of eight bytes: like a normal distribution, and fast to draw.
float roughly_normal(std::mt19937_64& engine) {
  std::uint64_t bits = engine();
  int sum = 0;
  for (int i = 0; i < 8; ++i, bits >>= 8) sum += static_cast<int>(bits & 255);
  return static_cast<float>(sum - 1020) / 209.0f;
}

WeightMatrix random_head(const Shape& shape) {
  WeightMatrix head = unpacked_matrix(WeightFormat::kBf16, shape.rows, shape.columns);
  std::mt19937_64 engine(1);
  std::vector<std::byte> values(16 * shape.columns * 2);
  for (std::size_t row = 0; row < shape.rows; row += 16) {
    const std::size_t count = std::min<std::size_t>(16, shape.rows - row) * shape.columns;
    for (std::size_t i = 0; i < count; ++i) {
      const auto bits = numerics::to_bf16(roughly_normal(engine) * 0.02f).bits;
      values[2 * i] = static_cast<std::byte>(bits);
      values[2 * i + 1] = static_cast<std::byte>(bits >> 8);
    }
    if (!pack_values(std::span(values).first(count * 2), row, head)) std::abort();
  }
  return head;
}

// Rows whose largest logit is `cosine` of what it could be; 0: random rows.
std::vector<float> hidden_rows(const WeightMatrix& head, std::size_t tokens, double cosine,
                               std::uint64_t seed) {
  std::mt19937_64 engine(seed);
  std::vector<float> x(tokens * head.columns);
  for (std::size_t token = 0; token < tokens; ++token) {
    const std::size_t row = engine() % head.rows;
    const double along = cosine / 0.02;
    const double across = std::sqrt(1 - cosine * cosine);
    for (std::size_t k = 0; k < head.columns; ++k) {
      const double value = along * static_cast<double>(weight_at(head, row, k)) +
                           across * static_cast<double>(roughly_normal(engine));
      x[token * head.columns + k] = numerics::round_to_bf16(static_cast<float>(value));
    }
  }
  return x;
}

struct Rows {
  std::size_t tokens;
  double cosine;
};

struct Times {
  std::vector<double> whole;
  std::vector<double> search;
  double computed = 0;  // share of the rows

  void print(std::size_t threads, std::size_t tokens, double cosine) const {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < whole.size(); ++i) ratios.push_back(whole[i] / search[i]);
    std::printf("%7zu %6zu %7.2f %9.2f %9.2f %9.2f %9.2f %7.2f %7.2f %10.4f\n", threads, tokens,
                cosine, median(whole) * 1e3, *std::ranges::min_element(whole) * 1e3,
                median(search) * 1e3, *std::ranges::min_element(search) * 1e3, median(ratios),
                *std::ranges::max_element(ratios), computed);
  }
};

Times measure(const Shape& shape, const WeightMatrix& head, const CoarseMatrix& copy,
              const std::vector<float>& x, WorkerPool& workers) {
  const ActivationRows rows = {.data = x.data(),
                               .stride = head.columns,
                               .tokens = x.size() / head.columns,
                               .values = ActivationValues::kBf16};
  std::vector<float> outputs(rows.tokens * head.rows);
  Times times;
  for (std::size_t run = 0; run <= shape.runs; ++run) {
    const double start = monotonic_seconds();
    matmul(head, rows, outputs.data(), head.rows, workers);
    std::vector<LargestProduct> all;
    for (std::size_t token = 0; token < rows.tokens; ++token) {
      all.push_back(find_largest(std::span(outputs).subspan(token * head.rows, head.rows)));
    }
    const double middle = monotonic_seconds();
    const std::vector<LargestProduct> found = largest_products(head, copy, rows, workers);
    const double end = monotonic_seconds();
    for (std::size_t token = 0; token < rows.tokens; ++token) {
      if (found[token].row != all[token].row) std::puts("DIFFERENT");
      times.computed += static_cast<double>(found[token].computed);
    }
    if (run == 0) continue;
    times.whole.push_back(middle - start);
    times.search.push_back(end - middle);
  }
  times.computed /= static_cast<double>((shape.runs + 1) * rows.tokens * head.rows);
  return times;
}

int run(const Shape& shape) {
  const WeightMatrix head = random_head(shape);
  WorkerPool all(WorkerPool::hardware_threads());
  const double start = monotonic_seconds();
  const CoarseMatrix copy = coarse_copy(head, all);
  std::printf("%zu x %zu, %.2f GB; copy %.2f GB, made in %.2f s\n", shape.rows, shape.columns,
              static_cast<double>(head.byte_count()) / 1e9,
              static_cast<double>(coarse_bytes(shape.rows, shape.columns)) / 1e9,
              monotonic_seconds() - start);
  std::puts(
      "threads tokens  cosine  whole ms      best search ms      best   ratio    best "
      "rows computed");
  for (const std::size_t threads : {std::size_t{1}, WorkerPool::hardware_threads()}) {
    WorkerPool workers(threads);
    for (const Rows& rows : {Rows{1, 0.0}, Rows{1, 0.1}, Rows{1, 0.3}, Rows{2, 0.0}, Rows{4, 0.0},
                             Rows{6, 0.0}, Rows{8, 0.0}}) {
      const std::vector<float> x = hidden_rows(head, rows.tokens, rows.cosine, rows.tokens);
      measure(shape, head, copy, x, workers).print(threads, rows.tokens, rows.cosine);
    }
  }
  return 0;
}

}  // namespace
}  // namespace locket::kernels

int main(int argc, char** argv) {
  locket::kernels::Shape shape;
  const bool is_read = (argc < 3 || (locket::read_count(argv[1], shape.rows) &&
                                     locket::read_count(argv[2], shape.columns))) &&
                       (argc < 4 || locket::read_count(argv[3], shape.runs));
  if (!is_read) {
    std::fputs("usage: greedy_head_bench [ROWS COLUMNS [RUNS]]\n", stderr);
    return 2;
  }
  return locket::kernels::run(shape);
}
