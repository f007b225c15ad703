// The int8 products of mode `fast`: reading experts from memory for 1 to 8 tokens beside a plain
// read of the same bytes, and prompts beside the machine's integer units and the exact kernels of
// mode `reference`. All sides of a table run in turn, several times; a ratio is the median over the
// rounds of one side's rate by that of the first side in the same round.
//
//   build/release/bench/int8_matmul_bench [--threads N] [--rounds N] [--only experts|prompt]
#include <algorithm>
#include <array>
#include <cstdio>
#include <fmt/format.h>
#include <functional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "kernels/kernel_table.h"
#include "kernels/machine_limits.h"
#include "measure.h"
#include "numerics/bf16.h"

namespace locket {
namespace {

using kernels::KernelTable;
using kernels::PeakUnit;
using kernels::WeightMatrix;

constexpr std::size_t kHidden = 5120;
constexpr std::size_t kExpertWidth = 2304;
constexpr std::size_t kMatricesOfStep = 12;  // gate and up as one, and down, of six experts
constexpr std::array<std::size_t, 5> kFewTokens = {1, 2, 4, 6, 8};
constexpr std::array<std::size_t, 5> kPromptTokens = {12, 16, 48, 192, 512};

struct Options {
  std::size_t threads = 2;
  std::size_t rounds = 9;
  std::size_t weight_sets = 9;  // of 113 MB: more than any cache keeps
  std::string only;
};

// Random codes with scales as trained models have them.
WeightMatrix random_weights(std::size_t rows, std::size_t columns) {
  WeightMatrix w{.format = kernels::WeightFormat::kFp4,
                 .rows = rows,
                 .columns = columns,
                 .tiles = {},
                 .scales = {}};
  const std::size_t tiles = w.row_groups() * w.column_groups();
  w.tiles = tensor::AlignedBuffer(tiles * kernels::tile_bytes(w.format));
  w.scales = tensor::AlignedBuffer(tiles * kernels::tile_scale_bytes(w.format));
  std::mt19937_64 engine(rows + columns);
  for (std::size_t at = 0; at < w.tiles.size(); at += 8) {
    const std::uint64_t codes = engine();
    std::copy_n(reinterpret_cast<const std::byte*>(&codes), 8, w.tiles.data() + at);
  }
  for (std::byte& code : w.scales.bytes()) code = static_cast<std::byte>(118 + engine() % 4);
  return w;
}

// The same activations for both kinds of kernels.
struct Activations {
  Activations(std::size_t tokens, std::size_t columns)
      : values(tokens * columns), codes(tokens, columns) {
    std::mt19937 engine(3);
    std::normal_distribution<float> normal;
    for (float& value : values) value = numerics::round_to_bf16(normal(engine));
    for (std::size_t t = 0; t < tokens; ++t) {
      kernels::quantize_int8(std::span(values).subspan(t * columns, columns), codes.row(t));
    }
  }
  kernels::ActivationRows exact(std::size_t tokens) const {
    return {.data = values.data(),
            .stride = codes.columns(),
            .tokens = tokens,
            .values = kernels::ActivationValues::kBf16};
  }
  kernels::Int8Rows int8(std::size_t tokens) const {
    kernels::Int8Rows rows = codes.rows();
    rows.tokens = tokens;
    return rows;
  }

  std::vector<float> values;
  kernels::Int8Matrix codes;
};

struct Side {
  std::string name;
  std::function<double(std::size_t step)> run;  // returns the work done: bytes or operations
  std::vector<double> rates = {};
};

void measure(std::string_view title, std::string_view unit, std::size_t rounds,
             std::vector<Side>& sides) {
  std::size_t step = 0;
  for (Side& side : sides) side.run(step++);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (Side& side : sides) {
      const double start = monotonic_seconds();
      const double work = side.run(step++);
      side.rates.push_back(work / (monotonic_seconds() - start));
    }
  }
  fmt::print("\n{}\n{:<26} {:>12} {:>10}  {:>9}\n", title, "", "best " + std::string(unit),
             "median", "of first");
  for (const Side& side : sides) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < rounds; ++i) ratios.push_back(side.rates[i] / sides[0].rates[i]);
    fmt::print("{:<26} {:>12.1f} {:>10.1f}  {:>9.3f}\n", side.name,
               *std::max_element(side.rates.begin(), side.rates.end()) / 1e9,
               median(side.rates) / 1e9, median(ratios));
  }
  std::fflush(stdout);
}

enum class Inputs { kExact, kInt8 };

// One product by all threads, each a contiguous part of the rows.
class Products {
 public:
  explicit Products(std::size_t threads) : workers_(threads) {}

  WorkerPool& workers() { return workers_; }

  void multiply(const KernelTable& table, Inputs inputs, std::span<const WeightMatrix> matrices,
                const std::function<const Activations&(std::size_t)>& x, std::size_t tokens) {
    std::size_t most = 0;
    for (const WeightMatrix& w : matrices) most = std::max(most, w.rows);
    out_.resize(std::max(out_.size(), most * tokens));
    const std::size_t threads = workers_.thread_count();
    workers_.parallel_for(threads, 1, [&](std::size_t first, std::size_t last) {
      for (const WeightMatrix& w : matrices) {
        const std::size_t begin = w.row_groups() * first / threads;
        const std::size_t end = w.row_groups() * last / threads;
        const Activations& rows = x(w.columns);
        if (inputs == Inputs::kExact) {
          table.matmul_groups(w, rows.exact(tokens), out_.data(), w.rows, begin, end);
        } else {
          table.int8.matmul_groups(w, rows.int8(tokens), out_.data(), w.rows, begin, end);
        }
      }
    });
  }

 private:
  WorkerPool workers_;
  std::vector<float> out_;
};

std::string side_name(const KernelTable& table, Inputs inputs) {
  return fmt::format("{} {}", inputs == Inputs::kExact ? "exact" : "int8", table.name);
}

void experts(const Options& options) {
  std::vector<WeightMatrix> weights;
  for (std::size_t i = 0; i < options.weight_sets * kMatricesOfStep / 2; ++i) {
    weights.push_back(random_weights(2 * kExpertWidth, kHidden));
    weights.push_back(random_weights(kHidden, kExpertWidth));
  }
  const Activations wide(kFewTokens.back(), kHidden);
  const Activations narrow(kFewTokens.back(), kExpertWidth);
  const auto x = [&](std::size_t columns) -> const Activations& {
    return columns == kHidden ? wide : narrow;
  };
  Products products(options.threads);
  const auto of_step = [&](std::size_t step) {
    return std::span<const WeightMatrix>(weights).subspan(
        step % options.weight_sets * kMatricesOfStep, kMatricesOfStep);
  };
  double bytes = 0;
  for (const WeightMatrix& w : of_step(0)) bytes += static_cast<double>(w.byte_count());
  std::vector<Side> sides;
  sides.push_back({"plain read", [&](std::size_t step) {
                     for (const WeightMatrix& w : of_step(step)) {
                       kernels::read_plainly(w.tiles.bytes(), products.workers());
                       kernels::read_plainly(w.scales.bytes(), products.workers());
                     }
                     return bytes;
                   }});
  const auto add = [&](const KernelTable& table, Inputs inputs, std::size_t tokens) {
    sides.push_back({fmt::format("{}, M={}", side_name(table, inputs), tokens),
                     [&, inputs, tokens](std::size_t step) {
                       products.multiply(table, inputs, of_step(step), x, tokens);
                       return bytes;
                     }});
  };
  const KernelTable& fastest = *kernels::available_kernels().back();
  add(fastest, Inputs::kExact, 1);
  for (const std::size_t tokens : kFewTokens) add(fastest, Inputs::kInt8, tokens);
  measure(fmt::format("FP4 experts, {:.1f} MB a step, {} threads", bytes / 1e6, options.threads),
          "GB/s", options.rounds, sides);
}

void prompts(const Options& options) {
  const WeightMatrix weights = random_weights(2 * kExpertWidth, kHidden);
  const Activations x(kPromptTokens.back(), kHidden);
  const auto rows = [&](std::size_t) -> const Activations& { return x; };
  Products products(options.threads);
  for (const std::size_t tokens : kPromptTokens) {
    std::vector<Side> sides;
    for (const PeakUnit unit :
         {PeakUnit::kInt8, PeakUnit::kAmxInt8, PeakUnit::kBf16, PeakUnit::kAmxBf16}) {
      if (!kernels::has_peak_unit(unit)) continue;
      sides.push_back(
          {fmt::format("peak, {}", kernels::peak_unit_name(unit)), [&, unit](std::size_t) {
             return kernels::run_peak(unit, 4 * kernels::peak_rounds_per_millisecond(unit),
                                      products.workers());
           }});
    }
    const double operations = 2.0 * static_cast<double>(weights.rows * weights.columns * tokens);
    for (const KernelTable* table : kernels::available_kernels()) {
      if (table == &kernels::reference_kernels()) continue;
      for (const Inputs inputs : {Inputs::kExact, Inputs::kInt8}) {
        sides.push_back({side_name(*table, inputs), [&, table, inputs, tokens](std::size_t) {
                           products.multiply(*table, inputs, {&weights, 1}, rows, tokens);
                           return operations;
                         }});
      }
    }
    measure(fmt::format("{} tokens, FP4 {} x {}, {} threads", tokens, weights.rows, weights.columns,
                        options.threads),
            "Gop/s", options.rounds, sides);
  }
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
    if (name != "--only" || (value != "experts" && value != "prompt")) return false;
    options.only = value;
  }
  return true;
}

}  // namespace
}  // namespace locket

int main(int argc, char** argv) {
  locket::Options options;
  if (!locket::read_options(argc, argv, options)) {
    fmt::print(stderr, "usage: {} [--threads N] [--rounds N] [--only experts|prompt]\n", argv[0]);
    return 2;
  }
  if (options.only != "prompt") locket::experts(options);
  if (options.only != "experts") locket::prompts(options);
  return 0;
}
