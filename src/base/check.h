// Checks of the program's own promises. LOCKET_CHECK is always on; LOCKET_DCHECK only in the
// sanitizer presets. Expected failures are Results, never checks.
#pragma once

#include <source_location>

namespace locket {

// Writes the place and the condition to stderr and aborts.
[[noreturn]] void check_failed(const char* condition, const std::source_location& where);

}  // namespace locket

#define LOCKET_CHECK(condition)       \
  ((condition) ? static_cast<void>(0) \
               : ::locket::check_failed(#condition, std::source_location::current()))

#ifdef LOCKET_DEBUG_CHECKS
#define LOCKET_DCHECK(condition) LOCKET_CHECK(condition)
#else
#define LOCKET_DCHECK(condition) static_cast<void>(sizeof(!(condition)))
#endif
