#include "cli/model_setup.h"

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "cli/model_path.h"

namespace locket::cli {
namespace {

// A line that is written over on a terminal; nothing elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(std::string what)
      : what_(std::move(what)), is_terminal_(::isatty(STDERR_FILENO) == 1) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() {
    if (shown_ >= 0) std::fputs("\r\033[K", stderr);
  }

  void show(std::uint64_t done, std::uint64_t total) {
    const int percent = total == 0 ? 100 : static_cast<int>(done * 100 / total);
    if (!is_terminal_ || percent == shown_) return;
    shown_ = percent;
    std::fputs(fmt::format("\r{} {:3} %", what_, percent).c_str(), stderr);
  }

 private:
  std::string what_;
  bool is_terminal_;
  int shown_ = -1;
};

}  // namespace

Result<ModelSetup> set_up_model(const ModelOptions& options,
                                kernels::IndexScoreRounding index_scores) {
  const auto mode = model::find_numerics_mode(options.mode);
  const auto replay = engine::find_replay_mode(options.replay);
  if (!mode || !replay) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("mode \"{}\" or replay \"{}\" is not known; modes: reference, wide, "
                            "plain; replays: bounded, exact, full",
                            options.mode, options.replay));
  }
  LOCKET_TRY(const std::filesystem::path folder, resolve_model(options.model));
  const double start = monotonic_seconds();
  ProgressLine progress(fmt::format("loading {}", folder.string()));
  const engine::EngineOptions engine_options = {
      .numerics = {.mode = *mode, .index_scores = index_scores},
      .replay = *replay,
      .threads = options.threads,
      .pool_budget_bytes = options.memory_budget_bytes,
      .progress = [&](std::uint64_t done, std::uint64_t total) { progress.show(done, total); }};
  LOCKET_TRY(service::LoadedModel loaded, service::LoadedModel::open(folder, engine_options));
  for (const std::string& note : loaded.engine().notes()) log_info(note);
  return ModelSetup{.loaded = std::move(loaded), .load_seconds = monotonic_seconds() - start};
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
