// Speed of the kernels, every table of this machine, one thread. Matrices are small enough for the
// second cache level, or so large that they come from memory.
#include <array>
#include <benchmark/benchmark.h>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/quantize.h"
#include "kernels/rms_norm.h"
#include "kernels/rotary.h"
#include "kernels/swiglu.h"
#include "kernels/top_k.h"
#include "numerics/bf16.h"

namespace locket::kernels {
namespace {

std::vector<std::byte> random_bytes(std::size_t count, unsigned lowest, unsigned values) {
  std::mt19937 engine(1);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(lowest + engine() % values);
  return bytes;
}

std::vector<float> random_bf16(std::size_t count) {
  std::mt19937 engine(2);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = numerics::round_to_bf16(normal(engine));
  return values;
}

std::size_t stored_bytes(WeightFormat format, std::size_t elements) {
  return elements * tile_bytes(format) / (16 * 32);
}

WeightMatrix random_weights(WeightFormat format, std::size_t rows, std::size_t columns) {
  std::vector<std::byte> values = random_bytes(stored_bytes(format, rows * columns), 0, 126);
  if (format == WeightFormat::kBf16 || format == WeightFormat::kF32) {
    // The exponent byte in a usual range.
    const std::size_t size = format == WeightFormat::kF32 ? 4 : 2;
    for (std::size_t i = size - 1; i < values.size(); i += size) values[i] = std::byte{0x3C};
  }
  std::size_t scale_count = 0;
  if (format == WeightFormat::kFp8) scale_count = (rows + 31) / 32 * (columns / 32);
  if (format == WeightFormat::kFp4) scale_count = rows * (columns / 32);
  const std::vector<std::byte> scales = random_bytes(scale_count, 110, 6);
  auto packed = pack_weights(
      {.format = format, .rows = rows, .columns = columns, .values = values, .scales = scales});
  return std::move(packed.value());
}

struct MatmulCase {
  WeightFormat format;
  const char* name;
  ActivationValues values;
  std::size_t rows;
  std::size_t columns;
  std::size_t tokens;
};

void run_matmul(benchmark::State& state, const KernelTable& table, const MatmulCase& shape) {
  const WeightMatrix w = random_weights(shape.format, shape.rows, shape.columns);
  const std::vector<float> x = random_bf16(shape.tokens * shape.columns);
  std::vector<float> out(shape.tokens * shape.rows);
  const ActivationRows rows{
      .data = x.data(), .stride = shape.columns, .tokens = shape.tokens, .values = shape.values};
  for (auto _ : state) {
    table.matmul_groups(w, rows, out.data(), shape.rows, 0, w.row_groups());
    benchmark::DoNotOptimize(out.data());
  }
  const auto runs = static_cast<double>(state.iterations());
  const double products = static_cast<double>(shape.rows * shape.columns * shape.tokens);
  state.counters["GB/s"] = benchmark::Counter(runs * static_cast<double>(w.byte_count()) / 1e9,
                                              benchmark::Counter::kIsRate);
  state.counters["GFLOP/s"] =
      benchmark::Counter(runs * products * 2 / 1e9, benchmark::Counter::kIsRate);
}

void run_index_scores(benchmark::State& state, const KernelTable& table, std::size_t heads,
                      std::size_t count) {
  constexpr std::size_t kDim = 128;
  const std::vector<float> query = random_bf16(heads * kDim);
  const std::vector<float> keys = random_bf16(count * kDim);
  const std::vector<float> weights = random_bf16(heads);
  std::vector<float> scores(count);
  const IndexScoreInput input{
      .heads = heads, .dim = kDim, .query = query, .weights = weights, .keys = keys};
  for (auto _ : state) {
    table.index_scores(input, scores);
    benchmark::DoNotOptimize(scores.data());
  }
  state.counters["Mkeys/s"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(count) / 1e6,
                         benchmark::Counter::kIsRate);
}

void count_values(benchmark::State& state, std::size_t values) {
  state.counters["Mvalues/s"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(values) / 1e6,
      benchmark::Counter::kIsRate);
}

void run_rms_norm(benchmark::State& state, const KernelTable& table) {
  const std::vector<float> x = random_bf16(5120);
  std::vector<float> out(x.size());
  for (auto _ : state) {
    table.elementwise.rms_norm(x, x, 1e-6f, Rounding::kBf16, out);
    benchmark::DoNotOptimize(out.data());
  }
  count_values(state, x.size());
}

void run_swiglu(benchmark::State& state, const KernelTable& table) {
  const std::vector<float> gate = random_bf16(2304);
  std::vector<float> out(gate.size());
  for (auto _ : state) {
    table.elementwise.swiglu(gate, gate,
                             {.limit = 10.0f, .weight = 0.5f, .rounding = Rounding::kBf16}, out);
    benchmark::DoNotOptimize(out.data());
  }
  count_values(state, gate.size());
}

void run_rotary(benchmark::State& state, const KernelTable& table) {
  std::vector<float> pairs = random_bf16(64);
  const std::vector<float> cos(32, 0.8f);
  const std::vector<float> sin(32, 0.6f);
  for (auto _ : state) {
    table.elementwise.rotate_pairs(pairs, cos, sin, RotaryDirection::kForward, Rounding::kBf16);
    benchmark::DoNotOptimize(pairs.data());
  }
  count_values(state, pairs.size());
}

void run_fake_quantize(benchmark::State& state, const KernelTable& table) {
  std::vector<float> values = random_bf16(5120);
  for (auto _ : state) {
    table.elementwise.fake_quantize_fp8(values);
    benchmark::DoNotOptimize(values.data());
  }
  count_values(state, values.size());
}

void run_top_k(benchmark::State& state) {
  const std::vector<float> scores = random_bf16(1 << 20);
  TopKSelector selector;
  std::vector<std::int32_t> chosen;
  for (auto _ : state) {
    selector.reset(512);
    selector.add(scores, 0);
    selector.take_ascending(chosen);
    benchmark::DoNotOptimize(chosen.data());
  }
  count_values(state, scores.size());
}

constexpr std::array kMatmulCases = {
    // In the second cache level.
    MatmulCase{WeightFormat::kFp8, "fp8", ActivationValues::kBf16, 128, 5120, 1},
    MatmulCase{WeightFormat::kFp4, "fp4", ActivationValues::kBf16, 256, 5120, 1},
    MatmulCase{WeightFormat::kBf16, "bf16", ActivationValues::kBf16, 64, 5120, 1},
    MatmulCase{WeightFormat::kFp8, "fp8", ActivationValues::kF32, 128, 5120, 1},
    MatmulCase{WeightFormat::kFp4, "fp4", ActivationValues::kF32, 256, 5120, 1},
    MatmulCase{WeightFormat::kF32, "f32", ActivationValues::kF32, 32, 5120, 1},
    MatmulCase{WeightFormat::kFp8, "fp8", ActivationValues::kBf16, 128, 5120, 2},
    MatmulCase{WeightFormat::kFp4, "fp4", ActivationValues::kBf16, 256, 5120, 2},
    MatmulCase{WeightFormat::kFp8, "fp8", ActivationValues::kBf16, 128, 5120, 4},
    MatmulCase{WeightFormat::kFp4, "fp4", ActivationValues::kBf16, 256, 5120, 4},
    MatmulCase{WeightFormat::kFp8, "fp8", ActivationValues::kBf16, 128, 5120, 6},
    MatmulCase{WeightFormat::kFp4, "fp4", ActivationValues::kBf16, 256, 5120, 6},
    // From memory.
    MatmulCase{WeightFormat::kFp8, "fp8", ActivationValues::kBf16, 16384, 5120, 1},
    MatmulCase{WeightFormat::kFp4, "fp4", ActivationValues::kBf16, 32768, 5120, 1},
    MatmulCase{WeightFormat::kBf16, "bf16", ActivationValues::kBf16, 8192, 5120, 1},
    // Prefill.
    MatmulCase{WeightFormat::kFp8, "fp8", ActivationValues::kBf16, 1280, 5120, 16},
    MatmulCase{WeightFormat::kFp4, "fp4", ActivationValues::kBf16, 1280, 5120, 16},
    MatmulCase{WeightFormat::kFp8, "fp8", ActivationValues::kBf16, 1280, 5120, 192},
    MatmulCase{WeightFormat::kFp4, "fp4", ActivationValues::kBf16, 1280, 5120, 192},
    MatmulCase{WeightFormat::kBf16, "bf16", ActivationValues::kBf16, 1280, 5120, 192},
    MatmulCase{WeightFormat::kFp8, "fp8", ActivationValues::kF32, 1280, 5120, 192},
};

std::string case_name(const KernelTable& table, const MatmulCase& shape) {
  return "matmul/" + std::string(table.name) + "/" + shape.name +
         (shape.values == ActivationValues::kBf16 ? "/bf16 x" : "/f32 x") + "/" +
         std::to_string(shape.rows) + "x" + std::to_string(shape.columns) + "/" +
         std::to_string(shape.tokens) + " tokens";
}

void register_table(const KernelTable& table) {
  const std::string name(table.name);
  for (const MatmulCase& shape : kMatmulCases) {
    benchmark::RegisterBenchmark(
        case_name(table, shape).c_str(),
        [&table, shape](benchmark::State& state) { run_matmul(state, table, shape); });
  }
  benchmark::RegisterBenchmark(
      ("index_scores/" + name + "/32 heads").c_str(),
      [&table](benchmark::State& state) { run_index_scores(state, table, 32, 4096); });
  const std::array elementwise = {
      std::pair{"rms_norm/", &run_rms_norm}, std::pair{"swiglu/", &run_swiglu},
      std::pair{"rotate_pairs/", &run_rotary}, std::pair{"fake_quantize_fp8/", &run_fake_quantize}};
  for (const auto& [title, run] : elementwise) {
    benchmark::RegisterBenchmark(
        (title + name).c_str(),
        [&table, run = run](benchmark::State& state) { run(state, table); });
  }
}

const int kRegistered = [] {
  for (const KernelTable* table : available_kernels()) {
    if (table != &reference_kernels()) register_table(*table);
  }
  for (const auto& [title, run] :
       {std::pair{"rms_norm/reference", &run_rms_norm}, std::pair{"swiglu/reference", &run_swiglu},
        std::pair{"rotate_pairs/reference", &run_rotary},
        std::pair{"fake_quantize_fp8/reference", &run_fake_quantize}}) {
    benchmark::RegisterBenchmark(
        title, [run = run](benchmark::State& state) { run(state, reference_kernels()); });
  }
  benchmark::RegisterBenchmark("top_k/512 of 1M", run_top_k);
  return 0;
}();

}  // namespace
}  // namespace locket::kernels
