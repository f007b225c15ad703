#include "base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include "base/check.h"

namespace locket {
namespace {

spdlog::logger& logger() {
  static const auto instance = [] {
    auto made = std::make_shared<spdlog::logger>(
        "locket", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    made->set_pattern("%H:%M:%S %^%l%$ %v");
    return made;
  }();
  return *instance;
}

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
    case LogLevel::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(to_spdlog(level)); }
void log_debug(std::string_view line) { logger().debug("{}", line); }
void log_info(std::string_view line) { logger().info("{}", line); }
void log_warning(std::string_view line) { logger().warn("{}", line); }
void log_error(std::string_view line) { logger().error("{}", line); }

}  // namespace locket
