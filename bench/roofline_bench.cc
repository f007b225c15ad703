// How near the products with weights come to the machine: reading weights from memory for 1 to 8
// tokens beside a plain read of the same bytes, and prompts beside the bfloat16 unit. All sides of
// a table run in turn, several times; a ratio is the median over the rounds of one side's time by
// the other's in the same round.
//
//   build/release/bench/roofline_bench [--threads N] [--rounds N] [--only experts|dense|head|
//                                      prompt]
//
// Weights of more than 1 GiB are read one after the other, so that no cache holds the next ones.
#include <algorithm>
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "kernels/kernel_table.h"
#include "kernels/machine_limits.h"
#include "measure.h"
#include "roofline/peer_loop.h"
#include "roofline/weights.h"

namespace locket::bench {
namespace {

using kernels::PeakUnit;
using kernels::WeightFormat;
using kernels::WeightMatrix;

constexpr std::size_t kHidden = 5120;
constexpr std::size_t kExpertWidth = 2304;
constexpr std::size_t kExpertsOfStep = 6;
constexpr std::array<std::size_t, 5> kFewTokens = {1, 2, 4, 6, 8};
constexpr std::array<std::size_t, 5> kPromptTokens = {12, 16, 48, 192, 512};

struct Options {
  std::size_t threads = 2;
  std::size_t rounds = 7;
  std::size_t weight_sets = 9;  // of 113 MB and more
  std::string only;
};

// One thing that is measured; run(i) does it with the i-th weights.
struct Side {
  std::string name;
  double work;  // bytes or operations
  std::function<void(std::size_t)> run;
  std::vector<double> seconds = {};
};

// Runs all sides in turn; the first one is the measure.
void measure(std::string_view title, std::string_view unit, std::size_t rounds,
             std::vector<Side>& sides) {
  std::size_t step = 0;
  for (Side& side : sides) side.run(step++);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (Side& side : sides) {
      const double start = monotonic_seconds();
      side.run(step++);
      side.seconds.push_back(monotonic_seconds() - start);
    }
  }
  fmt::print("\n{}\n{:<34} {:>10} {:>10}  {:>9}\n", title, "", "best " + std::string(unit),
             "median", "of first");
  for (const Side& side : sides) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < rounds; ++i) {
      ratios.push_back(side.work / side.seconds[i] / (sides[0].work / sides[0].seconds[i]));
    }
    const double best = *std::min_element(side.seconds.begin(), side.seconds.end());
    fmt::print("{:<34} {:>10.1f} {:>10.1f}  {:>9.3f}\n", side.name, side.work / best / 1e9,
               side.work / median(side.seconds) / 1e9, median(ratios));
  }
  std::fflush(stdout);
}

class Bench {
 public:
  explicit Bench(const Options& options) : options_(options), workers_(options.threads) {}

  void experts();
  void dense();
  void head();
  void prompts();

 private:
  // Every thread reads a part of each matrix, with one wait at the end.
  void read(std::span<const WeightMatrix* const> matrices);
  void multiply(std::span<const WeightMatrix* const> matrices, std::size_t tokens);
  void multiply_like_peers(const Expert& expert);
  void prompt(std::string_view name, const WeightMatrix& weights);

  const RandomRows& rows(std::size_t columns);

  Options options_;
  WorkerPool workers_;
  std::map<std::size_t, RandomRows> rows_;  // by columns
  std::vector<float> out_;
};

const RandomRows& Bench::rows(std::size_t columns) {
  const auto found = rows_.find(columns);
  if (found != rows_.end()) return found->second;
  return rows_.emplace(columns, RandomRows(kPromptTokens.back(), columns)).first->second;
}

void Bench::read(std::span<const WeightMatrix* const> matrices) {
  const std::size_t threads = options_.threads;
  workers_.parallel_for(threads, 1, [&](std::size_t first, std::size_t last) {
    WorkerPool alone(1);
    for (const WeightMatrix* matrix : matrices) {
      for (const std::span<const std::byte> bytes :
           {matrix->tiles.bytes(), matrix->scales.bytes()}) {
        const std::size_t lines = bytes.size() / 64;
        const std::size_t begin = lines * first / threads * 64;
        kernels::read_plainly(bytes.subspan(begin, lines * last / threads * 64 - begin), alone);
      }
    }
  });
}

void Bench::multiply(std::span<const WeightMatrix* const> matrices, std::size_t tokens) {
  const std::size_t threads = options_.threads;
  std::size_t most_rows = 0;
  for (const WeightMatrix* matrix : matrices) {
    most_rows = std::max(most_rows, matrix->rows);
    rows(matrix->columns);
  }
  out_.resize(std::max(out_.size(), most_rows * tokens));
  workers_.parallel_for(threads, 1, [&](std::size_t first, std::size_t last) {
    for (const WeightMatrix* matrix : matrices) {
      const std::size_t groups = matrix->row_groups();
      kernels::active_kernels().matmul_groups(*matrix, rows(matrix->columns).first(tokens),
                                              out_.data(), matrix->rows, groups * first / threads,
                                              groups * last / threads);
    }
  });
}

void Bench::multiply_like_peers(const Expert& expert) {
  const std::size_t threads = options_.threads;
  for (const WeightMatrix& matrix : expert.matrices) {
    const PeerRow x = peer_row(rows(matrix.columns).row());
    workers_.parallel_for(threads, 1, [&](std::size_t first, std::size_t last) {
      const std::size_t begin = matrix.rows * first / threads;
      const std::size_t end = matrix.rows * last / threads;
      std::vector<float> out(end - begin);
      peer_product(matrix.tiles.data() + begin * matrix.columns / 2,
                   matrix.scales.data() + begin * matrix.columns / 32, x, out);
    });
  }
}

std::vector<const WeightMatrix*> pointers(std::span<const WeightMatrix> matrices) {
  std::vector<const WeightMatrix*> result;
  for (const WeightMatrix& matrix : matrices) result.push_back(&matrix);
  return result;
}

double bytes_of(std::span<const WeightMatrix* const> matrices) {
  std::size_t bytes = 0;
  for (const WeightMatrix* matrix : matrices) bytes += matrix->byte_count();
  return static_cast<double>(bytes);
}

std::string tokens_name(std::string_view what, std::size_t tokens) {
  return fmt::format("{}, {} token{}", what, tokens, tokens == 1 ? "" : "s");
}

void Bench::experts() {
  std::vector<Expert> experts;
  for (std::size_t i = 0; i < options_.weight_sets * kExpertsOfStep; ++i) {
    experts.push_back(random_expert(WeightFormat::kFp4));
  }
  const auto of_step = [&](std::size_t step) {
    return std::span(experts).subspan(step % options_.weight_sets * kExpertsOfStep, kExpertsOfStep);
  };
  const auto matrices = [&](std::size_t step) {
    std::vector<const WeightMatrix*> all;
    for (const Expert& expert : of_step(step)) {
      for (const WeightMatrix& matrix : expert.matrices) all.push_back(&matrix);
    }
    return all;
  };
  const double bytes = bytes_of(matrices(0));
  std::vector<Side> sides;
  sides.push_back({"plain read", bytes, [&](std::size_t step) { read(matrices(step)); }});
  sides.push_back({"peer loop, row-major int8", bytes, [&](std::size_t step) {
                     for (const Expert& expert : of_step(step)) multiply_like_peers(expert);
                   }});
  for (const std::size_t tokens : kFewTokens) {
    sides.push_back({tokens_name("Locket", tokens), bytes,
                     [&, tokens](std::size_t step) { multiply(matrices(step), tokens); }});
  }
  measure(fmt::format("FP4 experts, {:.1f} MB a step, {} threads", bytes / 1e6, options_.threads),
          "GB/s", options_.rounds, sides);
}

void Bench::dense() {
  std::vector<std::vector<WeightMatrix>> layers;
  for (std::size_t i = 0; i < options_.weight_sets * 7 / 9 + 1; ++i) {
    layers.push_back(random_dense_layer());
  }
  const auto matrices = [&](std::size_t step) { return pointers(layers[step % layers.size()]); };
  const double bytes = bytes_of(matrices(0));
  std::vector<Side> sides;
  sides.push_back({"plain read", bytes, [&](std::size_t step) { read(matrices(step)); }});
  for (const std::size_t tokens : kFewTokens) {
    sides.push_back({tokens_name("Locket", tokens), bytes,
                     [&, tokens](std::size_t step) { multiply(matrices(step), tokens); }});
  }
  measure(
      fmt::format("FP8 dense layer, {:.1f} MB a step, {} threads", bytes / 1e6, options_.threads),
      "GB/s", options_.rounds, sides);
}

void Bench::head() {
  constexpr std::size_t kVocabulary = 129280;
  const WeightMatrix head =
      random_weights(WeightFormat::kBf16, kVocabulary * options_.weight_sets / 9, kHidden);
  const std::array<const WeightMatrix*, 1> matrices = {&head};
  const double bytes = bytes_of(matrices);
  std::vector<Side> sides;
  sides.push_back({"plain read", bytes, [&](std::size_t) { read(matrices); }});
  for (const std::size_t tokens : {1, 2, 6}) {
    sides.push_back({tokens_name("Locket", tokens), bytes,
                     [&, tokens](std::size_t) { multiply(matrices, tokens); }});
  }
  measure(fmt::format("bfloat16 head, {:.1f} MB, {} threads", bytes / 1e6, options_.threads),
          "GB/s", options_.rounds, sides);
}

void Bench::prompt(std::string_view name, const WeightMatrix& weights) {
  const std::array<const WeightMatrix*, 1> matrices = {&weights};
  std::vector<Side> sides;
  const std::size_t peak_rounds = 4 * kernels::peak_rounds_per_millisecond(PeakUnit::kBf16);
  const double peak_work = kernels::run_peak(PeakUnit::kBf16, peak_rounds, workers_);
  sides.push_back({"vdpbf16ps in registers", peak_work, [&](std::size_t) {
                     kernels::run_peak(PeakUnit::kBf16, peak_rounds, workers_);
                   }});
  for (const std::size_t tokens : kPromptTokens) {
    const double work = 2.0 * static_cast<double>(weights.rows * weights.columns * tokens);
    sides.push_back({tokens_name("Locket", tokens), work,
                     [&, tokens](std::size_t) { multiply(matrices, tokens); }});
  }
  measure(
      fmt::format("{} {} x {}, {} threads", name, weights.rows, weights.columns, options_.threads),
      "GFLOP/s", options_.rounds, sides);
}

void Bench::prompts() {
  if (!kernels::has_peak_unit(PeakUnit::kBf16)) {
    fmt::print("\nno bfloat16 unit: prompts are not measured\n");
    return;
  }
  prompt("FP4", random_weights(WeightFormat::kFp4, 2 * kExpertWidth, kHidden));
  prompt("FP4", random_weights(WeightFormat::kFp4, kHidden, kExpertWidth));
  prompt("FP8", random_weights(WeightFormat::kFp8, 2 * kExpertWidth, kHidden));
  prompt("bfloat16", random_weights(WeightFormat::kBf16, kExpertWidth, kHidden));
}

bool read_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name.starts_with("--benchmark_min_time")) {
      options.rounds = 1;
      options.weight_sets = 1;
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string_view value = argv[++i];
    if (name == "--threads" && read_count(value, options.threads)) continue;
    if (name == "--rounds" && read_count(value, options.rounds)) continue;
    if (name == "--only") {
      options.only = value;
      continue;
    }
    return false;
  }
  return true;
}

int run(int argc, char** argv) {
  Options options;
  if (!read_options(argc, argv, options)) {
    fmt::print(stderr, "usage: {} [--threads N] [--rounds N] [--only NAME]\n", argv[0]);
    return 2;
  }
  fmt::print("kernels: {}\n", kernels::active_kernels().name);
  Bench bench(options);
  const auto wanted = [&](std::string_view name) {
    return options.only.empty() || options.only == name;
  };
  if (wanted("experts")) bench.experts();
  if (wanted("dense")) bench.dense();
  if (wanted("head")) bench.head();
  if (wanted("prompt")) bench.prompts();
  return 0;
}

}  // namespace
}  // namespace locket::bench

int main(int argc, char** argv) { return locket::bench::run(argc, argv); }
