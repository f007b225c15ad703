#include "cli/progress_line.h"

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>
#include <utility>

namespace locket::cli {

ProgressLine::ProgressLine(std::string what)
    : what_(std::move(what)), is_terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressLine::~ProgressLine() {
  if (shown_ >= 0) std::fputs("\r\033[K", stderr);
}

void ProgressLine::show(std::uint64_t done, std::uint64_t total) {
  const int percent = total == 0 ? 100 : static_cast<int>(done * 100 / total);
  if (!is_terminal_ || percent == shown_) return;
  shown_ = percent;
  std::fputs(fmt::format("\r{} {:3} %", what_, percent).c_str(), stderr);
}

}  // namespace locket::cli
