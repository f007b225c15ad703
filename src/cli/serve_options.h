// What `locket serve` takes: the flags that people know from other servers where there is a
// counterpart, and a hint where there is none.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}  // namespace CLI

namespace locket::cli {

// Adds the command. Filled when the parser is done; settings of the environment and of a file are
// in it then.
void add_serve(CLI::App& app, ServeOptions& options);

// The words of a command line as the parser knows them: with dashes for underscores in the names
// of flags, and long names for short ones of two letters (-np). Others than `serve` are left alone.
std::vector<std::string> known_words(std::vector<std::string> words);

}  // namespace locket::cli
