// What `locket cache` takes. One struct for all its commands: `action` says which it is.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "cli/options.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}  // namespace CLI

namespace locket::cli {

// Adds the command with all of its own. Filled when the parser is done.
void add_cache(CLI::App& app, CacheOptions& options);

}  // namespace locket::cli
