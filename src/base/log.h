// The only door for diagnostics. Lines go to stderr with time and level; the level is set once at
// start. Library code never prints any other way. Thread-safe.
#pragma once

#include <string_view>

namespace locket {

enum class LogLevel { kDebug, kInfo, kWarning, kError, kOff, kCount };

void set_log_level(LogLevel level);
void log_debug(std::string_view line);
void log_info(std::string_view line);
void log_warning(std::string_view line);
void log_error(std::string_view line);

}  // namespace locket
