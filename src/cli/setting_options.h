// Options that the command line leaves out, from the environment and from a file of settings.
// What is typed wins over the environment, and that over the file.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
}  // namespace CLI

namespace locket::cli {

// REQUIRES: called when the command line has been read (a callback of `command`). The option
// --NAME is set by LOCKET_NAME; the file is the one that --config (or LOCKET_CONFIG) names, see
// server/config_file.h. Values are checked as typed ones are; throws the parser's errors, which say
// where a value came from.
void apply_settings(CLI::App& command);

// "--max-num-seqs" is set by "LOCKET_MAX_NUM_SEQS".
std::string variable_name(const std::string& option_name);

}  // namespace locket::cli
