#include "base/log.h"

#include <atomic>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <memory>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>
#include <string>
#include <unistd.h>

#include "base/check.h"

namespace locket {
namespace {

struct Log {
  std::shared_ptr<spdlog::logger> logger;
  std::atomic<LogStyle> style = LogStyle::kText;
};

void use_style(spdlog::logger& logger, LogStyle style) {
  if (style == LogStyle::kText) {
    logger.set_pattern("%H:%M:%S %^%l%$ %v");
  } else {
    // The members of a line come as its text.
    logger.set_pattern(R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l",%v})",
                       spdlog::pattern_time_type::utc);
  }
}

Log& log() {
  static Log instance{std::make_shared<spdlog::logger>(
      "locket", std::make_shared<spdlog::sinks::stderr_color_sink_mt>())};
  static const bool has_pattern = [] {
    use_style(*instance.logger, LogStyle::kText);
    return true;
  }();
  static_cast<void>(has_pattern);
  return instance;
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

// Bytes of the UTF-8 character at the beginning of `text`; 0 if there is none.
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t index) { return static_cast<std::uint8_t>(text[index]); };
  const std::uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return 0;
  for (std::size_t index = 1; index < bytes; ++index) {
    if ((byte(index) & 0xC0) != 0x80) return 0;
  }
  // Forms that are longer than they need to be, halves of pairs, and what lies beyond Unicode.
  const std::uint8_t second = byte(1);
  const bool is_outside = (first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
                          (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F);
  return is_outside ? 0 : bytes;
}

// The inside of a JSON string.
std::string escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 8);
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    const char first = text.front();
    if (bytes == 0) {
      out += "\\ufffd";
    } else if (first == '"' || first == '\\') {
      out += {'\\', first};
    } else if (static_cast<unsigned char>(first) < 0x20) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(first));
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

void write(LogLevel level, std::string_view line) {
  const auto spdlog_level = to_spdlog(level);
  spdlog::logger& logger = *log().logger;
  if (!logger.should_log(spdlog_level)) return;
  if (log_style() == LogStyle::kText) {
    logger.log(spdlog_level, "{}", line);
  } else {
    logger.log(spdlog_level, "\"message\":\"{}\"", escaped(line));
  }
}

}  // namespace

void set_log_level(LogLevel level) { log().logger->set_level(to_spdlog(level)); }

void set_log_style(LogStyle style) {
  use_style(*log().logger, style);
  log().style = style;
}

LogStyle log_style() { return log().style; }

LogStyle log_style_of_stderr() {
  return ::isatty(STDERR_FILENO) == 1 ? LogStyle::kText : LogStyle::kJson;
}

Status log_to_file(const std::filesystem::path& path) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  try {
    sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string());
  } catch (const spdlog::spdlog_ex& error) {
    return fail(ErrorCode::kIo,
                fmt::format("cannot open the log file {}: {}", path.string(), error.what()));
  }
  log().logger->sinks() = {std::move(sink)};
  // A line that is lost in a crash is the one that was wanted.
  log().logger->flush_on(spdlog::level::debug);
  use_style(*log().logger, log_style());
  return {};
}

void log_debug(std::string_view line) { write(LogLevel::kDebug, line); }
void log_info(std::string_view line) { write(LogLevel::kInfo, line); }
void log_warning(std::string_view line) { write(LogLevel::kWarning, line); }
void log_error(std::string_view line) { write(LogLevel::kError, line); }

void log_record(std::string_view text, std::string_view json) {
  LOCKET_CHECK(json.size() > 2 && json.front() == '{' && json.back() == '}');
  if (log_style() == LogStyle::kText) {
    log().logger->info("{}", text);
  } else {
    log().logger->info("{}", json.substr(1, json.size() - 2));
  }
}

}  // namespace locket
