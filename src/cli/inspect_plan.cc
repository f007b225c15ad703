#include "cli/inspect_plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <system_error>

#include "base/clock.h"
#include "base/system_memory.h"
#include "base/worker_pool.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config_json.h"
#include "cli/model_path.h"
#include "engine/weight_plan.h"
#include "kernels/machine_limits.h"
#include "model/generations/v41_bytes.h"
#include "model/generations/v41_layout.h"
#include "model/numerics_mode.h"
#include "tensor/aligned_buffer.h"

namespace locket::cli {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 20;
constexpr int kTrials = 5;

struct Counted {
  model::V41Bytes bytes;
  std::string source;  // for people
};

// A folder without weights is no error: config.json is enough for an estimate.
Result<Counted> count(const std::filesystem::path& model, const model::V41Config& config) {
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(model, ignored);
  if (is_folder) {
    const auto checkpoint = checkpoint::Checkpoint::open(model);
    if (checkpoint) {
      return Counted{.bytes = model::count_v41_bytes(config, *checkpoint),
                     .source = fmt::format("counted from the {} tensors of {}",
                                           checkpoint->tensor_count(), model.string())};
    }
    if (checkpoint.error().code != ErrorCode::kNotFound) {
      return tl::make_unexpected(checkpoint.error());
    }
  }
  return Counted{.bytes = model::estimate_v41_bytes(config),
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
  const auto mode = model::find_numerics_mode(options.model.mode);
  if (!mode) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("mode \"{}\" is not known", options.model.mode));
  }
  LOCKET_TRY(const std::filesystem::path model, resolve_model(options.model.model));
  std::error_code ignored;
  const bool is_folder = std::filesystem::is_directory(model, ignored);
  LOCKET_TRY(const checkpoint::ConfigFile file,
             checkpoint::ConfigFile::open(is_folder ? model / "config.json" : model));
  LOCKET_TRY(const model::V41Config config, model::read_v41_config(file.root()));
  LOCKET_TRY(const Counted counted, count(model, config));
  const engine::WeightPlanWishes wishes = {.available_bytes = available_memory_bytes(),
                                           .expert_bytes = options.model.expert_memory_bytes,
                                           .pool_bytes = options.model.memory_budget_bytes};
  LOCKET_TRY(const engine::WeightPlan plan,
             engine::plan_weights(config, counted.bytes,
                                  model::make_v41_memory(config, *mode).layout, wishes));
  std::string text = fmt::format("The plan, {}\n\n", counted.source);
  const engine::ReadRates rates = {.memory = memory_rate(options.model.threads)};
  for (const std::string& line : engine::describe_plan(plan, rates)) text += "  " + line + "\n";
  return text;
}

}  // namespace locket::cli
