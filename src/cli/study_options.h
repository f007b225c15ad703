// The options of `locket memory`, `locket claims` and `locket lens`, for the parser.
#pragma once

#include "cli/options.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}  // namespace CLI

namespace locket::cli {

void add_memory(CLI::App& app, MemoryOptions& options);
void add_claims(CLI::App& app, ClaimsOptions& options);
void add_lens(CLI::App& app, LensOptions& options);

}  // namespace locket::cli
