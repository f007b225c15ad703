// What `locket doctor` takes, as the parser is told it.
#pragma once

#include "cli/options.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}  // namespace CLI

namespace locket::cli {

// Adds the command with all of its own. Filled when the parser is done.
void add_doctor(CLI::App& app, DoctorOptions& options);

}  // namespace locket::cli
