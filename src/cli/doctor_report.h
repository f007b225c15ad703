// What `locket doctor` found, one finding a line, and how it is shown.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace locket::cli {

struct Finding {
  enum class Level { kOk, kWarning, kFailure, kCount };
  Level level = Level::kOk;
  std::string area;    // "machine", "kernels", "checkpoint", "memory"
  std::string name;    // "large pages"
  std::string text;    // what was found, one line
  std::string advice;  // what to do; empty if nothing is to be done
};

// "ok", "warn", "FAIL".
std::string_view level_name(Finding::Level level);

// Nothing failed.
bool is_healthy(const std::vector<Finding>& findings);

// A line per finding, its advice behind it, and a last line that counts.
std::string findings_text(const std::vector<Finding>& findings);
// {"healthy", "kernels", "findings": [{"area", "name", "level", "text", "advice"}]} on one line.
std::string findings_json(const std::vector<Finding>& findings);

}  // namespace locket::cli
