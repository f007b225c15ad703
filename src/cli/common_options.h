// Options that several commands take, and how ranges are checked: for the files that describe
// commands to the parser.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "cli/options.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's
class App;
class Option;
class Validator;
}  // namespace CLI

namespace locket::cli {

inline constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;

// Ranges and names are told in the help text, so the validators add nothing to it. No option takes
// a negative number. Made for int, std::int64_t, std::uint64_t and double.
template <class Number>
CLI::Validator in_range(Number low, Number high);
CLI::Validator one_of(std::vector<std::string> names);

void add_model(CLI::App& command, std::filesystem::path& model);
// The model and what its numbers depend on.
void add_model_choice(CLI::App& command, ModelOptions& options);
// And what it runs with.
void add_model_options(CLI::App& command, ModelOptions& options);
// What may lie in RAM; part of the above.
void add_room_options(CLI::App& command, ModelOptions& options);
// Where the memory is on disk, and how large it may become.
void add_memory_options(CLI::App& command, ModelOptions& options);
void add_sampling_options(CLI::App& command, SamplingOptions& options);
// Where measurements of the disk make their files.
CLI::Option* add_scratch(CLI::App& command, std::filesystem::path& scratch);
void add_effort(CLI::App& command, std::string& effort);

// A command with its line in the list and an example under its help.
CLI::App& add_command(CLI::App& app, const char* name, const char* description,
                      const char* example);

}  // namespace locket::cli
