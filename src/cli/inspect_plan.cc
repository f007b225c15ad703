#include "cli/inspect_plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>

#include "base/clock.h"
#include "base/system_memory.h"
#include "base/worker_pool.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/model_config.h"
#include "cli/mode_choice.h"
#include "cli/model_path.h"
#include "engine/weight_plan.h"
#include "kernels/machine_limits.h"
#include "model/generations/generation.h"
#include "model/numerics_mode.h"
#include "tensor/aligned_buffer.h"

namespace locket::cli {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 20;
constexpr int kTrials = 5;

struct Counted {
  model::WeightBytes bytes;
  std::string source;  // for people
};

// A folder without weights is no error: config.json is enough for an estimate.
Result<Counted> count(const std::filesystem::path& model, const model::Generation& generation,
                      const checkpoint::ConfigObject& root) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(model, ignored);
  if (is_folder || checkpoint::is_gguf_file(model)) {
    const auto checkpoint = checkpoint::Checkpoint::open(model);
    if (checkpoint) {
      LOCKET_TRY(const model::WeightBytes bytes, generation.count_bytes(root, &*checkpoint));
      return Counted{.bytes = bytes,
                     .source = fmt::format("counted from the {} tensors of {}",
                                           checkpoint->tensor_count(), model.string())};
    }
    if (checkpoint.error().code != ErrorCode::kNotFound) {
      return tl::make_unexpected(checkpoint.error());
    }
  }
  LOCKET_TRY(const model::WeightBytes bytes, generation.count_bytes(root, nullptr));
  return Counted{.bytes = bytes,
                 .source = fmt::format("estimated from {}, in the release's number formats",
                                       (is_folder ? model / "config.json" : model).string())};
}

// The best of a few quick reads: a bound, not a measurement to quote.
double memory_rate(std::size_t threads) {
  if (available_memory_bytes() < 4 * kReadBytes) return 0;
  WorkerPool workers(threads > 0 ? threads : WorkerPool::hardware_threads());
  const tensor::AlignedBuffer buffer(kReadBytes);
  double best = 0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const double start = monotonic_seconds();
    static_cast<void>(kernels::read_plainly(buffer.bytes(), workers));
    best = std::max(best, static_cast<double>(kReadBytes) / (monotonic_seconds() - start));
  }
  return best;
}

}  // namespace

Result<std::string> inspect_plan(const InspectOptions& options) {
  LOCKET_TRY(const std::filesystem::path model, resolve_model(options.model.model));
  LOCKET_TRY(const checkpoint::ConfigFile file, checkpoint::open_model_config(model));
  LOCKET_TRY(const model::NumericsMode mode, choose_mode(options.model, file.root()));
  LOCKET_TRY(const model::Generation* generation, model::find_generation(file.root()));
  LOCKET_TRY(const model::ModelOutline outline, generation->outline(file.root(), mode));
  LOCKET_TRY(const Counted counted, count(model, *generation, file.root()));
  const engine::WeightPlanWishes wishes = {.available_bytes = available_memory_bytes(),
                                           .expert_bytes = options.model.expert_memory_bytes,
                                           .pool_bytes = options.model.memory_budget_bytes};
  LOCKET_TRY(const engine::WeightPlan plan,
             engine::plan_weights(counted.bytes, outline.memory.layout, wishes));
  std::string text = fmt::format("The plan, {}\n\n", counted.source);
  const engine::ReadRates rates = {.memory = memory_rate(options.model.threads)};
  for (const std::string& line : engine::describe_plan(plan, rates)) text += "  " + line + "\n";
  return text;
}

}  // namespace locket::cli
