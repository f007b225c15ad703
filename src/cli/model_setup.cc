#include "cli/model_setup.h"

#include <cstdio>
#include <fmt/format.h>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "cli/memory_path.h"
#include "cli/mode_choice.h"
#include "cli/model_path.h"
#include "cli/progress_line.h"

namespace locket::cli {
namespace {

// Of a default place that cannot be used.
void warn_without_disk(const std::string& reason) {
  log_warning("nothing is remembered after the program ends: " + reason);
}

Result<engine::MemoryOptions> memory_options(const ModelOptions& options) {
  using IfUnusable = engine::MemoryOptions::IfUnusable;
  engine::MemoryOptions memory;
  LOCKET_TRY(const MemoryChoice choice, choose_memory(options.memory));
  const bool is_default = choice.source == MemoryChoice::Source::kDefault;
  if (choice.is_off) {
    if (is_default) warn_without_disk(choice.why_off);
    return memory;
  }
  const Status prepared = prepare_memory_folder(choice);
  if (!prepared && !is_default) return tl::make_unexpected(prepared.error());
  if (!prepared) {
    warn_without_disk(prepared.error().message);
    return memory;
  }
  memory.directory = choice.directory;
  memory.if_unusable = is_default ? IfUnusable::kGoOnWithout : IfUnusable::kFail;
  memory.disk_quota_bytes = options.memory_quota_bytes > 0 ? options.memory_quota_bytes
                                                           : default_memory_quota(choice.directory);
  return memory;
}

// Of a model that is small nobody needs to know.
void tell_plan(const engine::WeightPlan& plan) {
  constexpr std::uint64_t kSmall = std::uint64_t{4} << 30;
  if (!plan.streams && plan.peak_bytes() - plan.pool_bytes < kSmall) return;
  for (const std::string& line : engine::describe_plan(plan, {})) log_info("plan: " + line);
}

struct SetupWishes {
  engine::MemoryOptions memory = {};
  kernels::IndexScoreRounding index_scores = kernels::IndexScoreRounding::kF32;
  LoadingProgress on_progress = {};
};

Result<ModelSetup> set_up(const ModelOptions& options, const SetupWishes& wishes) {
  const auto replay = engine::find_replay_mode(options.replay);
  if (!replay) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("replay \"{}\" is not known; there are bounded, exact and full",
                            options.replay));
  }
  LOCKET_TRY(const std::filesystem::path folder, resolve_model(options.model));
  LOCKET_TRY(const model::NumericsMode mode, choose_mode(options, folder));
  const double start = monotonic_seconds();
  ProgressLine progress(fmt::format("loading {}", folder.string()));
  const engine::EngineOptions engine_options = {
      .numerics = {.mode = mode, .index_scores = wishes.index_scores},
      .replay = *replay,
      .threads = options.threads,
      .pool_budget_bytes = options.memory_budget_bytes,
      .expert_budget_bytes = options.expert_memory_bytes,
      .memory = wishes.memory,
      .progress =
          [&](std::uint64_t done, std::uint64_t total) {
            progress.show(done, total);
            if (wishes.on_progress && total > 0) {
              wishes.on_progress(static_cast<double>(done) / static_cast<double>(total));
            }
          },
      .on_plan = tell_plan};
  LOCKET_TRY(service::LoadedModel loaded, service::LoadedModel::open(folder, engine_options));
  for (const std::string& note : loaded.engine().notes()) log_info(note);
  return ModelSetup{.loaded = std::move(loaded), .load_seconds = monotonic_seconds() - start};
}

}  // namespace

Result<ModelSetup> set_up_model(const ModelOptions& options,
                                kernels::IndexScoreRounding index_scores) {
  return set_up(options, {.memory = {.keeps = engine::MemoryOptions::Keeps::kNothing},
                          .index_scores = index_scores});
}

Result<ModelSetup> set_up_remembering_model(const ModelOptions& options,
                                            const LoadingProgress& on_progress) {
  LOCKET_TRY(const engine::MemoryOptions memory, memory_options(options));
  return set_up(options, {.memory = memory, .on_progress = on_progress});
}

service::CompletionDefaults completion_defaults(const SamplingOptions& options) {
  return {.temperature = options.temperature,
          .top_k = options.top_k,
          .top_p = options.top_p,
          .min_p = options.min_p,
          .seed = options.seed,
          .max_tokens = options.max_tokens};
}

int report(const Error& error) {
  std::fputs(fmt::format("locket: {}: {}\n", error_code_name(error.code), error.message).c_str(),
             stderr);
  return 1;
}

}  // namespace locket::cli
