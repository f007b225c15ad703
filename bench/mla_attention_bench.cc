// Latent attention of one position and layer at the shapes of V2 and V3: 128 absorbed queries of
// 576 over rows as they are served (bfloat16, or FP8 with bfloat16 rotated keys), of which 512
// values are averaged. Its rate stands beside the float32 peak of the machine, measured in turn.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/worker_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/machine_limits.h"
#include "kernels/row_codec.h"
#include "kernels/sparse_attention.h"
#include "measure.h"

namespace locket::kernels {
namespace {

constexpr std::size_t kHeads = 128;
constexpr std::size_t kWidth = 576;
constexpr std::size_t kValues = 512;
constexpr std::size_t kTokens = 2048;  // what an indexer chooses
constexpr double kOperations = 2.0 * kHeads * kTokens * (kWidth + kValues);

class Position {
 public:
  explicit Position(RowFormat format)
      : memory_(kTokens * row_bytes(format, kWidth)), out_(kHeads * kValues) {
    std::mt19937 engine(7);
    std::normal_distribution<float> normal;
    std::vector<float> values(kWidth);
    const std::size_t bytes = row_bytes(format, kWidth);
    for (std::size_t token = 0; token < kTokens; ++token) {
      for (float& value : values) value = normal(engine);
      const auto row = std::span(memory_).subspan(token * bytes, bytes);
      encode_row(format, values, row);
      rows_.push_back({.bytes = row.data(), .format = format});
    }
    query_.resize(kHeads * kWidth);
    for (float& value : query_) value = normal(engine);
  }

  double seconds(const KernelTable& table) {
    const double begin = monotonic_seconds();
    table.sparse_attention({.heads = kHeads,
                            .head_dim = kWidth,
                            .scale = 0.135f,
                            .query = query_,
                            .rows = rows_,
                            .sink = {},
                            .value_dim = kValues},
                           out_);
    return monotonic_seconds() - begin;
  }

 private:
  std::vector<std::byte> memory_;
  std::vector<AttentionRow> rows_;
  std::vector<float> query_;
  std::vector<float> out_;
};

double peak_rate(WorkerPool& workers) {
  const std::size_t rounds = peak_rounds_per_millisecond(PeakUnit::kF32) + 1;
  const double begin = monotonic_seconds();
  const double operations = run_peak(PeakUnit::kF32, rounds, workers);
  return operations / (monotonic_seconds() - begin);
}

void measure(const char* name, RowFormat format, const KernelTable& table, double seconds) {
  Position position(format);
  WorkerPool alone(1);
  std::vector<double> rates;
  std::vector<double> peaks;
  for (double spent = 0; spent < seconds || rates.size() < 15;) {
    const double time = position.seconds(table);
    spent += time;
    rates.push_back(kOperations / time);
    peaks.push_back(peak_rate(alone));
  }
  const auto best = [](const std::vector<double>& values) {
    return *std::ranges::max_element(values);
  };
  std::printf(
      "%-9s %-12.*s best %6.2f ms, %6.1f GFLOP/s; of the float32 peak %6.1f: best %.2f, "
      "median %.2f\n",
      name, static_cast<int>(table.name.size()), table.name.data(), kOperations / best(rates) * 1e3,
      best(rates) / 1e9, best(peaks) / 1e9, best(rates) / best(peaks),
      median(rates) / median(peaks));
}

void run_all(double seconds) {
  if (!has_peak_unit(PeakUnit::kF32)) return;
  for (const KernelTable* table : available_kernels()) {
    if (table == &reference_kernels()) continue;
    measure("bfloat16", RowFormat::kBf16, *table, seconds);
    measure("FP8", RowFormat::kMlaFp8, *table, seconds);
  }
}

}  // namespace
}  // namespace locket::kernels

int main(int argc, char** argv) {
  double seconds = 0.5;
  constexpr std::string_view kMinTime = "--benchmark_min_time=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(kMinTime)) seconds = std::atof(argv[i] + kMinTime.size());
  }
  locket::kernels::run_all(seconds);
  return 0;
}
