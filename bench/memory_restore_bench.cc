// What a restart costs: the real store writes a prefix in turns, then a store that knows nothing
// finds and loads it into fresh memory, beside a plain read of the same bytes (O_DIRECT, 1 MB, 4
// threads), in turn. Also the size of the folder and what was written to make it.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <unistd.h>
#include <vector>

#include "base/check.h"
#include "cache/disk_store.h"
#include "cli/restore_trial.h"
#include "measure.h"

namespace locket {
namespace {

using cli::RestoreSeconds;
using cli::RestoreTarget;
using cli::RestoreTrial;

struct Wishes {
  std::vector<std::size_t> tokens = {131'072, 1'048'576};
  std::size_t runs = 7;
  std::size_t threads = cache::DiskOptions{}.read_threads;
  std::string directory = "/tmp";
  double benchmark_min_time = 0;
};

template <class T>
T checked(Result<T> result) {
  LOCKET_CHECK(result.has_value());
  return std::move(*result);
}

void measure(const Wishes& wishes, std::size_t tokens) {
  const std::uint64_t before = written_bytes();
  const RestoreTrial trial = checked(RestoreTrial::make(wishes.directory, tokens));
  // The plain file is written with it.
  const auto written = static_cast<double>(written_bytes() - before - trial.byte_count());
  ::sync();
  std::vector<double> opens, finds, firsts, alls, plains, plain_held, fresh, held_alls, ratios,
      held_ratios, parts;
  for (std::size_t run = 0; run < wishes.runs; ++run) {
    plains.push_back(checked(trial.read_plainly(RestoreTarget::kReused)));
    plain_held.push_back(checked(trial.read_plainly(RestoreTarget::kHeld)));
    fresh.push_back(checked(trial.read_plainly(RestoreTarget::kFresh)));
    const RestoreSeconds seconds = checked(trial.restore(RestoreTarget::kFresh, wishes.threads));
    opens.push_back(seconds.open);
    finds.push_back(seconds.find);
    firsts.push_back(seconds.first);
    alls.push_back(seconds.all);
    ratios.push_back(seconds.all / fresh.back());
    held_alls.push_back(checked(trial.restore(RestoreTarget::kHeld, wishes.threads)).all);
    held_ratios.push_back(held_alls.back() / plain_held.back());
    parts.push_back(seconds.first / seconds.all);
  }
  const auto snapshots = static_cast<double>(trial.snapshot_count() * trial.snapshot_bytes());
  const auto size = static_cast<double>(trial.disk_bytes());
  const auto count = static_cast<double>(tokens);
  fmt::print(
      "{{\"tokens\": {}, \"open_ms\": {:.1f}, \"find_ms\": {:.1f}, \"keys_first_ms\": {:.1f}, "
      "\"restore_ms\": {:.1f}, \"restore_held_ms\": {:.1f}, \"plain_fresh_ms\": {:.1f}, "
      "\"plain_held_ms\": {:.1f}, \"plain_ms\": {:.1f}, \"restore_per_plain_fresh\": {:.3f}, "
      "\"restore_held_per_plain_held\": {:.3f}, \"restore_per_plain\": {:.3f}, "
      "\"keys_first_per_restore\": {:.3f}, \"bytes_per_token\": {:.1f}, "
      "\"snapshot_bytes_per_token\": {:.1f}, \"written_per_stored\": {:.3f}}}\n",
      tokens, 1e3 * median(opens), 1e3 * median(finds), 1e3 * median(firsts), 1e3 * median(alls),
      1e3 * median(held_alls), 1e3 * median(fresh), 1e3 * median(plain_held), 1e3 * median(plains),
      median(ratios), median(held_ratios), median(alls) / median(plains), median(parts),
      (size - snapshots) / count, snapshots / count,
      written / static_cast<double>(trial.payload_bytes()));
}

}  // namespace
}  // namespace locket

int main(int argc, char** argv) {
  locket::Wishes wishes;
  CLI::App app("Restores a stored prefix after a restart, beside a plain read of the same bytes.");
  app.add_option("--tokens", wishes.tokens, "lengths of the prefix, multiples of 128")
      ->delimiter(',');
  app.add_option("--runs", wishes.runs, "runs of each, in turn; the medians are printed");
  app.add_option("--threads", wishes.threads, "reading threads of the store");
  app.add_option("--directory", wishes.directory, "where the files are made");
  app.add_option("--benchmark_min_time", wishes.benchmark_min_time, "given: only a short trial");
  CLI11_PARSE(app, argc, argv);
  if (wishes.benchmark_min_time > 0) {
    wishes.tokens = {4'096};
    wishes.runs = 1;
  }
  for (const std::size_t tokens : wishes.tokens) locket::measure(wishes, tokens);
  return 0;
}
