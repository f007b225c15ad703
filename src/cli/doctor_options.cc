#include "cli/doctor_options.h"

#include <CLI/CLI.hpp>

#include "cli/common_options.h"

namespace locket::cli {

void add_doctor(CLI::App& app, DoctorOptions& options) {
  CLI::App& command =
      add_command(app, "doctor", "what is wrong: machine, kernels, checkpoint, memory",
                  "locket doctor ~/models/DeepSeek-V4.1-Flash");
  add_model(command, options.model.model);
  command
      .add_option("--threads", options.model.threads,
                  "threads that are meant to compute, 0 to 1024 (default 0: one per core)")
      ->check(in_range(0, 1024))
      ->type_name("N");
  add_memory_options(command, options.model);
  command.add_flag("--measure", options.measures,
                   "also measure the machine, and how near the kernels come");
  command.add_flag("--json", options.json, "print everything as JSON");
}

}  // namespace locket::cli
