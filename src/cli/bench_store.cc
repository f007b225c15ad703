// The part that restores a stored memory after a restart.
#include <fmt/format.h>

#include "cache/disk_store.h"
#include "cli/bench_parts.h"
#include "cli/restore_trial.h"
#include "cli/text_table.h"

namespace locket::cli {

Result<BenchRows> bench_restore(const BenchSetup& setup) {
  constexpr std::size_t kQuickTokens = std::size_t{1} << 17;
  constexpr std::size_t kTokens = std::size_t{1} << 20;
  LOCKET_TRY(const RestoreTrial trial,
             RestoreTrial::make(setup.scratch, setup.is_quick ? kQuickTokens : kTokens));
  const std::size_t threads = cache::DiskOptions{}.read_threads;
  std::vector<double> whole, plain, first;
  for (std::size_t run = 0; run < setup.runs; ++run) {
    LOCKET_TRY(const double read, trial.read_plainly(RestoreTarget::kFresh));
    LOCKET_TRY(const RestoreSeconds restored, trial.restore(RestoreTarget::kFresh, threads));
    plain.push_back(read);
    whole.push_back(restored.all);
    first.push_back(restored.first);
  }
  const auto bytes = static_cast<double>(trial.byte_count());
  const std::string tokens = grouped(trial.tokens());
  return BenchRows{{.group = "H5",
                    .key = "restore_over_direct_read",
                    .what = fmt::format("restoring {} tokens over O_DIRECT read", tokens),
                    .bounds = {.sense = BenchSense::kLower, .floor = 1.2, .goal = 1.05},
                    .trials = ratio_trials(whole, plain, BenchSense::kLower),
                    .detail = fmt::format("{}; {:.0f} ms", rates_text(bytes, whole, plain, "B"),
                                          median_of(whole) * 1e3)},
                   {.group = "H5",
                    .key = "first_layer_over_restore",
                    .what = "until the first layer can start over the whole",
                    .bounds = {.sense = BenchSense::kLower, .floor = 0.5, .goal = 0.35},
                    .trials = ratio_trials(first, whole, BenchSense::kLower),
                    .detail = fmt::format("{:.0f} of {:.0f} ms", median_of(first) * 1e3,
                                          median_of(whole) * 1e3)}};
}

}  // namespace locket::cli
