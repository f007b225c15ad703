// The only door for diagnostics. Lines go to stderr with time and level; the level is set once at
// start, and so are style and place. Library code never prints any other way. Thread-safe, except
// set_log_style() and log_to_file(): REQUIRES that nobody logs meanwhile.
#pragma once

#include <filesystem>
#include <string_view>

#include "base/result.h"

namespace locket {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff, kCount };

enum class LogStyle {
  kText,  // for people; the default
  kJson,  // one object a line: {"time", "level", "message"}, time in UTC
  kCount
};

void set_log_level(LogLevel level);
void set_log_style(LogStyle style);
LogStyle log_style();
// Text if stderr is a terminal, else JSON.
LogStyle log_style_of_stderr();
// Lines go to the end of this file from now on, which is made if it is missing. kIo with the path
// if it cannot be opened; lines go on to stderr then.
[[nodiscard]] Status log_to_file(const std::filesystem::path& path);

void log_debug(std::string_view line);
void log_info(std::string_view line);
void log_warning(std::string_view line);
void log_error(std::string_view line);

// A record, at level info: as the line `text`, or as the members of `json` after time and level,
// whichever the style asks for. REQUIRES: `json` is one JSON object with at least one member, on
// one line.
void log_record(std::string_view text, std::string_view json);

}  // namespace locket
