#include "cli/bench_options.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>

#include "cli/common_options.h"

namespace locket::cli {

void add_bench(CLI::App& app, BenchOptions& options) {
  CLI::App& command =
      add_command(app, "bench", "how near this machine's limits the program comes, as ratios",
                  "locket bench --make-slice /data/slice && locket bench --slice /data/slice");
  auto* make = command
                   .add_option("--make-slice", options.make_slice,
                               "only make a checkpoint as wide as the release and 8 layers deep\n"
                               "in this new or empty folder, 4.3 GB, random weights")
                   ->type_name("DIR");
  command
      .add_option("--seed", options.seed,
                  "of the slice's weights: same seed, same files (default 1)")
      ->check(in_range<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max()))
      ->needs(make)
      ->type_name("N");
  auto* slice = command
                    .add_option("--slice", options.slice,
                                "run whole steps of this slice (default: only what needs none)")
                    ->type_name("DIR");
  auto* quick =
      command.add_flag("--quick", options.quick, "fewer runs and less data, under a minute");
  auto* json = command.add_option("--json", options.json, "write the rows as JSON to this file")
                   ->type_name("FILE");
  auto* only = command
                   .add_option("--only", options.only,
                               "only these rows, separated by commas: H1 to H8, small")
                   ->check(one_of({"H1", "H2", "H3", "H4", "H5", "H6", "H7", "H8", "small"}))
                   ->delimiter(',')
                   ->allow_extra_args(false)
                   ->type_name("LIST");
  auto* scratch = add_scratch(command, options.scratch);
  auto* threads = command
                      .add_option("--threads", options.threads,
                                  "threads to compute with, 0 to 1024 (default 0: one per core)")
                      ->check(in_range(0, 1024))
                      ->type_name("N");
  for (auto* other : {slice, quick, json, only, scratch, threads}) make->excludes(other);
}

}  // namespace locket::cli
