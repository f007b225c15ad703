#include "cli/setting_options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "server/config_file.h"

namespace locket::cli {
namespace {

constexpr std::uint64_t kMostFileBytes = std::uint64_t{1} << 20;
// Their variables have meanings of their own, in every command.
constexpr std::array<std::string_view, 3> kOwnVariables = {"model", "memory", "help"};

// Whether the option, or another in its place, has been given.
bool is_given(const CLI::Option& option) {
  return option.count() > 0 || std::ranges::any_of(option.get_excludes(), [](const auto* other) {
           return other->count() > 0;
         });
}

// `where`: for people.
void set_option(CLI::Option& option, std::vector<std::string> values, const std::string& where) {
  if (values.size() != 1 && option.get_items_expected_max() <= 1) {
    throw CLI::ValidationError(where,
                               fmt::format("{} values are given; it takes one", values.size()));
  }
  if (values.empty()) return;
  try {
    option.add_result(std::move(values));
    option.run_callback();
  } catch (const CLI::Error& error) {
    throw CLI::ValidationError(where, error.what());
  }
}

void apply_environment(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    const auto& names = option->get_lnames();
    if (names.empty() || is_given(*option)) continue;
    if (std::ranges::find(kOwnVariables, names.front()) != kOwnVariables.end()) continue;
    const std::string variable = variable_name(names.front());
    const char* value = std::getenv(variable.c_str());
    if (value != nullptr && *value != '\0') set_option(*option, {value}, variable);
  }
}

void apply_file(CLI::App& command, const std::string& path) {
  const Result<std::string> text = read_whole_file(path, kMostFileBytes);
  if (!text) throw CLI::ValidationError("--config", text.error().message);
  auto settings = server::read_config(*text, path);
  if (!settings) throw CLI::ValidationError("--config", settings.error().message);
  for (server::ConfigSetting& setting : *settings) {
    const std::string where = fmt::format("{}, line {}", path, setting.line);
    CLI::Option* option = command.get_option_no_throw("--" + setting.name);
    const bool is_setting = setting.name != "help" && setting.name != "config";
    if (option == nullptr || !is_setting) {
      throw CLI::ValidationError(where, fmt::format("there is no setting \"{}\"; the names are "
                                                    "those of the flags",
                                                    setting.name));
    }
    if (!is_given(*option)) set_option(*option, std::move(setting.values), where);
  }
}

}  // namespace

std::string variable_name(const std::string& option_name) {
  std::string name = "LOCKET_";
  const std::size_t start = std::min(option_name.find_first_not_of('-'), option_name.size());
  for (const char letter : option_name.substr(start)) {
    const bool is_lower = letter >= 'a' && letter <= 'z';
    name += letter == '-' ? '_' : is_lower ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return name;
}

void apply_settings(CLI::App& command) {
  apply_environment(command);
  const CLI::Option* file = command.get_option("--config");
  if (file->count() > 0) apply_file(command, file->results().front());
}

}  // namespace locket::cli
