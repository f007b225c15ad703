// The mixture of experts: one layer's step with two barriers beside the same step expert by expert
// and product by product, and beside a plain read of the weights that it uses. At the geometry of
// DeepSeek-V4.1-Flash with more experts than a cache holds, and at that of the small model that
// ships. Sides take turns inside one run. Before it, what a barrier costs.
//
//   moe_step_bench [--rounds N] [--benchmark_min_time S]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "kernels/machine_limits.h"
#include "kernels/swiglu.h"
#include "measure.h"
#include "model/linear.h"
#include "model/moe.h"
#include "numerics/bf16.h"

namespace locket::model {
namespace {

constexpr float kLimit = 10.0f;

struct Geometry {
  const char* name;
  std::size_t hidden;
  std::size_t size;
  std::size_t experts;
  std::size_t per_token;
};

struct Settings {
  std::size_t rounds = 31;
  std::size_t experts = 48;
  std::size_t most_tokens = 512;
};

double seconds_of(const std::function<void()>& run) {
  const auto start = std::chrono::steady_clock::now();
  run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

class Random {
 public:
  explicit Random(const Geometry& shape) : shape_(shape) {}
  const Geometry& shape() const { return shape_; }

  kernels::WeightMatrix weights(kernels::WeightFormat format, std::size_t rows,
                                std::size_t columns) {
    const bool is_fp4 = format == kernels::WeightFormat::kFp4;
    const std::vector<std::byte> values = bytes(rows * columns / (is_fp4 ? 2 : 1), 0, 126);
    const std::vector<std::byte> scales =
        bytes(is_fp4 ? rows * columns / 32 : rows / 32 * (columns / 32), 118, 4);
    auto packed = kernels::pack_weights(
        {.format = format, .rows = rows, .columns = columns, .values = values, .scales = scales});
    LOCKET_CHECK(packed.has_value());
    return std::move(*packed);
  }

  ExpertWeights expert(kernels::WeightFormat format) {
    return {.gate = weights(format, shape_.size, shape_.hidden),
            .up = weights(format, shape_.size, shape_.hidden),
            .down = weights(format, shape_.hidden, shape_.size)};
  }

  kernels::WeightMatrix router_gate() {
    std::vector<float> values(shape_.experts * shape_.hidden);
    for (float& value : values) value = normal_(engine_);
    auto packed = kernels::pack_weights({.format = kernels::WeightFormat::kF32,
                                         .rows = shape_.experts,
                                         .columns = shape_.hidden,
                                         .values = std::as_bytes(std::span(values)),
                                         .scales = {}});
    LOCKET_CHECK(packed.has_value());
    return std::move(*packed);
  }

  tensor::FloatMatrix activations(std::size_t tokens) {
    tensor::FloatMatrix u(tokens, shape_.hidden);
    for (float& value : u.values()) value = numerics::round_to_bf16(normal_(engine_));
    return u;
  }

 private:
  std::vector<std::byte> bytes(std::size_t count, std::uint32_t lowest, std::uint32_t values) {
    std::vector<std::byte> filled(count);
    for (std::byte& byte : filled) byte = static_cast<std::byte>(lowest + engine_() % values);
    return filled;
  }

  const Geometry shape_;
  std::minstd_rand engine_{1};
  std::normal_distribution<float> normal_;
};

struct Layer {
  MoeConfig config;
  MoeWeights weights;
  std::unique_ptr<ExpertSource> experts;

  const ExpertWeights& expert(std::int32_t id) const {
    const std::int32_t ids[] = {id};
    return **experts->fetch(0, ids)->wait(0);
  }
};

Layer make_layer(Random& random) {
  const Geometry& shape = random.shape();
  Layer layer;
  layer.config = {.router = {.experts_per_token = shape.per_token, .scaling_factor = 1.5f},
                  .swiglu_limit = kLimit};
  layer.weights.router = {.gate = random.router_gate(), .bias = std::vector<float>(shape.experts)};
  layer.weights.shared = random.expert(kernels::WeightFormat::kFp8);
  std::vector<std::vector<ExpertWeights>> experts(1);
  for (std::size_t id = 0; id < shape.experts; ++id) {
    experts.front().push_back(random.expert(kernels::WeightFormat::kFp4));
  }
  layer.experts = resident_experts(std::move(experts));
  return layer;
}

// The experts that a step uses, with the shared one.
std::vector<const ExpertWeights*> used_experts(const Layer& layer, ForwardContext& context,
                                               const tensor::FloatMatrix& u) {
  Routing routing = route(context, layer.config.router, layer.weights.router, u);
  std::ranges::sort(routing.experts);
  const auto [first, last] = std::ranges::unique(routing.experts);
  routing.experts.erase(first, last);
  std::vector<const ExpertWeights*> used;
  for (const std::int32_t id : routing.experts) used.push_back(&layer.expert(id));
  used.push_back(&layer.weights.shared);
  return used;
}

std::size_t byte_count(const std::vector<const ExpertWeights*>& experts) {
  std::size_t bytes = 0;
  for (const ExpertWeights* expert : experts) {
    bytes += expert->gate.byte_count() + expert->up.byte_count() + expert->down.byte_count();
  }
  return bytes;
}

void read_experts(const std::vector<const ExpertWeights*>& experts, WorkerPool& workers) {
  for (const ExpertWeights* expert : experts) {
    for (const kernels::WeightMatrix* w : {&expert->gate, &expert->up, &expert->down}) {
      kernels::read_plainly(w->tiles.bytes(), workers);
      kernels::read_plainly(w->scales.bytes().first(w->scales.size() / 64 * 64), workers);
    }
  }
}

void add_expert(ForwardContext& context, const ExpertWeights& weights, const tensor::FloatMatrix& x,
                const std::vector<std::size_t>& tokens, tensor::FloatMatrix& sum) {
  tensor::FloatMatrix gate = rounded_linear(context, weights.gate, x);
  const tensor::FloatMatrix up = rounded_linear(context, weights.up, x);
  for (std::size_t row = 0; row < x.rows(); ++row) {
    kernels::swiglu(gate.row(row), up.row(row), kLimit, 1.0f, context.numerics.rounding(),
                    gate.row(row));
  }
  const tensor::FloatMatrix y =
      rounded_linear(context, weights.down, quantize_activations(context, gate));
  for (std::size_t row = 0; row < x.rows(); ++row) {
    for (std::size_t i = 0; i < sum.columns(); ++i) sum.row(tokens[row])[i] += y.row(row)[i];
  }
}

// Expert by expert, every product a barrier.
void step_by_expert(const Layer& layer, ForwardContext& context, const tensor::FloatMatrix& u) {
  const Routing routing = route(context, layer.config.router, layer.weights.router, u);
  const tensor::FloatMatrix input = quantize_activations(context, u);
  const std::size_t experts = layer.experts->expert_count();
  std::vector<std::vector<std::size_t>> tokens(experts + 1);
  for (std::size_t i = 0; i < routing.experts.size(); ++i) {
    tokens[static_cast<std::size_t>(routing.experts[i])].push_back(i / routing.experts_per_token);
  }
  for (std::size_t token = 0; token < u.rows(); ++token) tokens[experts].push_back(token);
  tensor::FloatMatrix sum(u.rows(), u.columns());
  for (std::size_t id = 0; id <= experts; ++id) {
    if (tokens[id].empty()) continue;
    tensor::FloatMatrix x(tokens[id].size(), u.columns());
    for (std::size_t row = 0; row < x.rows(); ++row) {
      std::ranges::copy(input.row(tokens[id][row]), x.row(row).begin());
    }
    const ExpertWeights& weights =
        id < experts ? layer.expert(static_cast<std::int32_t>(id)) : layer.weights.shared;
    add_expert(context, weights, x, tokens[id], sum);
  }
  kernels::round_values(sum.values(), context.numerics.rounding());
}

struct Times {
  std::vector<double> read;
  std::vector<double> by_expert;
  std::vector<double> step;
};

double best(const std::vector<double>& values) { return *std::ranges::min_element(values); }

struct Case {
  std::size_t threads;
  std::size_t tokens;
  std::size_t rounds;
};

void print_case(const Case& run, const Times& times, double bytes, double flops) {
  std::vector<double> of_read;
  std::vector<double> of_experts;
  for (std::size_t i = 0; i < times.step.size(); ++i) {
    of_read.push_back(times.read[i] / times.step[i]);
    of_experts.push_back(times.by_expert[i] / times.step[i]);
  }
  std::printf(
      "%4zu tokens %zu threads: by expert %9.1f us best %9.1f, step %9.1f us best %9.1f; "
      "read %5.1f GB/s, step %5.1f GB/s %6.1f GFLOP/s; read/step %.2f best %.2f, "
      "by expert/step %.2f best %.2f\n",
      run.tokens, run.threads, median(times.by_expert) * 1e6, best(times.by_expert) * 1e6,
      median(times.step) * 1e6, best(times.step) * 1e6, bytes / best(times.read) / 1e9,
      bytes / best(times.step) / 1e9, flops / best(times.step) / 1e9, median(of_read),
      best(times.read) / best(times.step), median(of_experts),
      best(times.by_expert) / best(times.step));
  std::fflush(stdout);
}

void run_case(const Layer& layer, Random& random, const Case& shape) {
  WorkerPool workers(shape.threads);
  ForwardContext context = {.workers = workers, .numerics = {.mode = NumericsMode::kReference}};
  Times times;
  double bytes = 0;
  double flops = 0;
  for (std::size_t round = 0; round < shape.rounds; ++round) {
    const auto forward = [&](const tensor::FloatMatrix& u) {
      LOCKET_CHECK(
          moe_forward(context, layer.config, layer.weights, *layer.experts, u, 0).has_value());
    };
    // Inputs of its own for every side: other experts, none of them in a cache.
    const tensor::FloatMatrix u = random.activations(shape.tokens);
    const tensor::FloatMatrix other = random.activations(shape.tokens);
    const auto used = used_experts(layer, context, random.activations(shape.tokens));
    const double read = seconds_of([&] { read_experts(used, workers); });
    const auto of_step = static_cast<double>(byte_count(used_experts(layer, context, u)));
    times.read.push_back(read * of_step / static_cast<double>(byte_count(used)));
    times.by_expert.push_back(seconds_of([&] { step_by_expert(layer, context, other); }));
    context.work = {};
    times.step.push_back(seconds_of([&] { forward(u); }));
    flops = 2.0 * static_cast<double>(context.work.matmul);
    bytes = of_step;
  }
  print_case(shape, times, bytes, flops);
}

// Rounds that follow at once, and rounds after a pause in which the others sleep.
void run_barriers(std::size_t threads) {
  WorkerPool workers(threads);
  const std::function<void(std::size_t, std::size_t)> nothing = [](std::size_t, std::size_t) {};
  std::vector<double> quick;
  std::vector<double> after_pause;
  for (std::size_t round = 0; round < 200; ++round) {
    constexpr std::size_t kCalls = 100;
    quick.push_back(seconds_of([&] {
                      for (std::size_t call = 0; call < kCalls; ++call) {
                        workers.parallel_for(threads, 1, nothing);
                      }
                    }) /
                    kCalls);
    const auto pause_end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1);
    while (std::chrono::steady_clock::now() < pause_end) continue;
    after_pause.push_back(seconds_of([&] { workers.parallel_for(threads, 1, nothing); }));
  }
  std::printf(
      "%zu threads barrier: in a row median %.2f us best %.2f us; after 1 ms alone median "
      "%.1f us best %.1f us\n",
      threads, median(quick) * 1e6, best(quick) * 1e6, median(after_pause) * 1e6,
      best(after_pause) * 1e6);
}

void run_geometry(const Geometry& shape, const Settings& settings) {
  std::printf("%s: %zu experts of %zu x %zu, %zu per token\n", shape.name, shape.experts,
              shape.hidden, shape.size, shape.per_token);
  Random random(shape);
  const Layer layer = make_layer(random);
  for (const std::size_t tokens : {1, 2, 6, 64, 512}) {
    if (tokens > settings.most_tokens) break;
    const bool is_long = tokens > 6 && shape.hidden > 1000;
    const std::size_t rounds =
        is_long ? std::max<std::size_t>(5, settings.rounds / 5) : settings.rounds;
    for (const std::size_t threads : {1, 2}) run_case(layer, random, {threads, tokens, rounds});
  }
}

void run(const Settings& settings) {
  for (const std::size_t threads : {1, 2}) run_barriers(threads);
  run_geometry({"small model", 128, 96, 8, 2}, settings);
  run_geometry({"release", 5120, 2304, settings.experts, 6}, settings);
}

}  // namespace
}  // namespace locket::model

int main(int count, char** arguments) {
  locket::model::Settings settings;
  for (int i = 1; i < count; ++i) {
    const std::string_view argument = arguments[i];
    // The short run of the smoke test.
    if (argument.starts_with("--benchmark_min_time")) settings = {5, 8, 6};
    if (argument == "--rounds" && i + 1 < count) {
      settings.rounds = std::strtoul(arguments[++i], nullptr, 10);
    }
  }
  locket::model::run(settings);
  return 0;
}
