#include "cli/memory_path.h"

#include <algorithm>
#include <cstdlib>
#include <fmt/format.h>
#include <system_error>

#include "base/folder.h"

namespace locket::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMemoryVariable = "LOCKET_MEMORY";
constexpr std::string_view kOff = "off";
constexpr std::uint64_t kMostQuotaBytes = std::uint64_t{64} << 30;
// Where the free space cannot be asked.
constexpr std::uint64_t kBlindQuotaBytes = std::uint64_t{1} << 30;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Without a slash at the end, which would follow a link.
fs::path folder_path(const std::string& text) {
  fs::path path = fs::path(text).lexically_normal();
  if (path.filename().empty() && path.has_relative_path()) path = path.parent_path();
  return path;
}

MemoryChoice named_choice(const std::string& text, MemoryChoice::Source source,
                          std::string_view name) {
  if (text == kOff) {
    return {.source = source,
            .is_off = true,
            .directory = {},
            .why_off = fmt::format("{} is off", name)};
  }
  return {.source = source, .is_off = false, .directory = folder_path(text), .why_off = {}};
}

std::string_view source_name(MemoryChoice::Source source) {
  switch (source) {
    case MemoryChoice::Source::kOption:
      return "--memory";
    case MemoryChoice::Source::kEnvironment:
      return kMemoryVariable;
    case MemoryChoice::Source::kDefault:
      break;
  }
  return "the default place of the memory";
}

}  // namespace

MemoryChoice find_memory(const MemorySearch& search) {
  using Source = MemoryChoice::Source;
  if (!search.option.empty()) return named_choice(search.option, Source::kOption, "--memory");
  if (!search.environment.empty()) {
    return named_choice(search.environment, Source::kEnvironment, kMemoryVariable);
  }
  MemoryChoice choice;
  if (fs::path(search.cache_home).is_absolute()) {
    choice.directory = folder_path(search.cache_home) / "locket" / "memory";
  } else if (fs::path(search.home).is_absolute()) {
    choice.directory = folder_path(search.home) / ".cache" / "locket" / "memory";
  } else {
    choice.is_off = true;
    choice.why_off =
        fmt::format("neither XDG_CACHE_HOME nor HOME names a folder; name one with --memory or {}",
                    kMemoryVariable);
  }
  return choice;
}

Result<MemoryChoice> choose_memory(const std::string& option) {
  return find_memory({.option = option,
                      .environment = variable(kMemoryVariable),
                      .cache_home = variable("XDG_CACHE_HOME"),
                      .home = variable("HOME")});
}

Status prepare_memory_folder(const MemoryChoice& choice) {
  Status status = make_private_folder(choice.directory);
  if (status) status = check_private_folder(choice.directory);
  if (status) return {};
  return fail(status.error().code,
              fmt::format("{} ({})", status.error().message, source_name(choice.source)));
}

std::uint64_t default_memory_quota(const std::filesystem::path& directory) {
  std::error_code error;
  const fs::space_info space = fs::space(directory, error);
  if (error) return kBlindQuotaBytes;
  return std::min((space.available + allocated_bytes_below(directory)) / 10, kMostQuotaBytes);
}

}  // namespace locket::cli
