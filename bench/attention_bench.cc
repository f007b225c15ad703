// Sparse attention of one position and layer at the shapes of the release: 64 heads of 512, a
// window of 128 FP8 rows, 512 FP4 rows gathered from a layer's memory of a million tokens. Its rate
// stands beside the peaks of the machine in the same run, measured in turn.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/memory_region.h"
#include "base/worker_pool.h"
#include "kernels/kernel_table.h"
#include "kernels/machine_limits.h"
#include "kernels/row_codec.h"
#include "kernels/sparse_attention.h"
#include "measure.h"
#include "numerics/bf16.h"

namespace locket::kernels {
namespace {

constexpr std::size_t kHeads = 64;
constexpr std::size_t kHeadDim = 512;
constexpr std::size_t kWindow = 128;
constexpr std::size_t kSelected = 512;
constexpr std::size_t kMemoryRows = std::size_t{1} << 20;
constexpr std::size_t kLists = 16;  // different selections, so that rows come from memory

double seconds_of(const auto& run) {
  const double begin = monotonic_seconds();
  run();
  return monotonic_seconds() - begin;
}

// Random codes; scales of a usual size.
void fill_row(std::mt19937& engine, RowFormat format, std::byte* row) {
  const std::size_t bytes = row_bytes(format, kHeadDim);
  const std::size_t codes = format == RowFormat::kFp8 ? kHeadDim : kHeadDim / 2;
  for (std::size_t i = 0; i < codes; ++i) {
    row[i] = static_cast<std::byte>(format == RowFormat::kFp8 ? engine() % 0x70 : engine());
  }
  const unsigned lowest = format == RowFormat::kFp8 ? 118 : 0x20;
  for (std::size_t i = codes; i < bytes; ++i)
    row[i] = static_cast<std::byte>(lowest + engine() % 8);
}

class Position {
 public:
  Position()
      : memory_(kMemoryRows * row_bytes(RowFormat::kFp4Main, kHeadDim),
                MemoryRegion::Pages::kLarge),
        window_(kWindow * row_bytes(RowFormat::kFp8, kHeadDim)),
        query_(kHeads * kHeadDim),
        sink_(kHeads, 0.5f),
        out_(kHeads * kHeadDim) {
    std::normal_distribution<float> normal(0.0f, 0.3f);
    for (float& value : query_) value = numerics::round_to_bf16(normal(engine_));
    const std::size_t row = row_bytes(RowFormat::kFp4Main, kHeadDim);
    for (std::size_t i = 0; i < kMemoryRows; ++i) {
      fill_row(engine_, RowFormat::kFp4Main, memory_.data() + i * row);
    }
    const std::size_t window_row = row_bytes(RowFormat::kFp8, kHeadDim);
    for (std::size_t i = 0; i < kWindow; ++i) {
      fill_row(engine_, RowFormat::kFp8, window_.data() + i * window_row);
    }
    for (std::size_t i = 0; i < kLists; ++i) lists_.push_back(random_list());
  }

  // All heads, shared out among the threads.
  void run(const KernelTable& table, WorkerPool& workers) {
    const std::vector<AttentionRow>& rows = lists_[next_++ % kLists];
    const std::size_t parts = workers.thread_count();
    workers.parallel_for(parts, 1, [&](std::size_t begin, std::size_t end) {
      for (std::size_t part = begin; part < end; ++part) {
        const std::size_t first = kHeads * part / parts;
        const std::size_t count = kHeads * (part + 1) / parts - first;
        const auto query = std::span<const float>(query_).subspan(first * kHeadDim);
        table.sparse_attention({.heads = count,
                                .head_dim = kHeadDim,
                                .scale = 1.0f / std::sqrt(static_cast<float>(kHeadDim)),
                                .query = query.first(count * kHeadDim),
                                .rows = rows,
                                .sink = std::span<const float>(sink_).subspan(first, count),
                                .rounding = Rounding::kBf16},
                               std::span(out_).subspan(first * kHeadDim, count * kHeadDim));
      }
    });
  }

  static constexpr double kOperations = 4.0 * kHeads * kHeadDim * (kWindow + kSelected);

 private:
  std::vector<AttentionRow> random_list() {
    std::vector<AttentionRow> rows;
    const std::size_t window_row = row_bytes(RowFormat::kFp8, kHeadDim);
    for (std::size_t i = 0; i < kWindow; ++i) {
      rows.push_back({.bytes = window_.data() + i * window_row, .format = RowFormat::kFp8});
    }
    std::vector<std::size_t> chosen(kSelected);
    for (std::size_t& row : chosen) row = engine_() % kMemoryRows;
    std::sort(chosen.begin(), chosen.end());
    const std::size_t bytes = row_bytes(RowFormat::kFp4Main, kHeadDim);
    for (const std::size_t row : chosen) {
      rows.push_back({.bytes = memory_.data() + row * bytes, .format = RowFormat::kFp4Main});
    }
    return rows;
  }

  std::mt19937 engine_{7};
  MemoryRegion memory_;
  std::vector<std::byte> window_;
  std::vector<float> query_;
  std::vector<float> sink_;
  std::vector<float> out_;
  std::vector<std::vector<AttentionRow>> lists_;
  std::size_t next_ = 0;
};

// Operations a second of short runs of one unit.
double peak_rate(PeakUnit unit, WorkerPool& workers) {
  double operations = 0;
  const std::size_t rounds = peak_rounds_per_millisecond(unit) / 4 + 1;
  const double seconds = seconds_of([&] { operations = run_peak(unit, rounds, workers); });
  return operations / seconds;
}

struct Rates {
  std::vector<double> attention;
  std::vector<double> bf16;
  std::vector<double> f32;
};

double best(const std::vector<double>& rates) {
  return *std::max_element(rates.begin(), rates.end());
}

Rates measure(Position& position, const KernelTable& table, WorkerPool& workers, double seconds) {
  Rates rates;
  double spent = 0;
  while (spent < seconds || rates.attention.size() < 15) {
    const double time = seconds_of([&] { position.run(table, workers); });
    rates.attention.push_back(Position::kOperations / time);
    if (has_peak_unit(PeakUnit::kBf16)) rates.bf16.push_back(peak_rate(PeakUnit::kBf16, workers));
    if (has_peak_unit(PeakUnit::kF32)) rates.f32.push_back(peak_rate(PeakUnit::kF32, workers));
    spent += time;
  }
  return rates;
}

void print_ratio(const char* name, const std::vector<double>& attention,
                 const std::vector<double>& peak) {
  if (peak.empty()) return;
  std::printf("   of %s peak %6.1f: best %.2f, median %.2f\n", name, best(peak) / 1e9,
              best(attention) / best(peak), median(attention) / median(peak));
}

void run_all(double seconds) {
  Position position;
  for (const std::size_t threads : {std::size_t{1}, WorkerPool::hardware_threads()}) {
    WorkerPool workers(threads);
    for (const KernelTable* table : available_kernels()) {
      if (table == &reference_kernels()) continue;
      const Rates rates = measure(position, *table, workers, seconds);
      std::printf("%-12.*s %zu thread(s): best %6.1f us, median %6.1f us, %6.1f GFLOP/s\n",
                  static_cast<int>(table->name.size()), table->name.data(), threads,
                  Position::kOperations / best(rates.attention) * 1e6,
                  Position::kOperations / median(rates.attention) * 1e6,
                  best(rates.attention) / 1e9);
      print_ratio("bf16", rates.attention, rates.bf16);
      print_ratio("f32", rates.attention, rates.f32);
    }
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
