#include "cli/doctor_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <nlohmann/json.hpp>

#include "cli/json_lines.h"
#include "kernels/kernel_table.h"

namespace locket::cli {
namespace {

using Json = nlohmann::ordered_json;
using Level = Finding::Level;

std::size_t count(const std::vector<Finding>& findings, Level level) {
  return static_cast<std::size_t>(std::ranges::count(findings, level, &Finding::level));
}

std::string verdict(const std::vector<Finding>& findings) {
  const std::size_t failures = count(findings, Level::kFailure);
  const std::size_t warnings = count(findings, Level::kWarning);
  const auto things = [](std::size_t number, const char* one, const char* many) {
    return fmt::format("{} {}", number, number == 1 ? one : many);
  };
  if (failures > 0) {
    return fmt::format("{} wrong, {}", things(failures, "thing is", "things are"),
                       things(warnings, "warning", "warnings"));
  }
  if (warnings > 0) return fmt::format("sound, {}", things(warnings, "warning", "warnings"));
  return "sound";
}

}  // namespace

std::string_view level_name(Level level) {
  constexpr std::string_view kNames[] = {"ok", "warn", "FAIL"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Level::kCount));
  return kNames[static_cast<std::size_t>(level)];
}

bool is_healthy(const std::vector<Finding>& findings) {
  return count(findings, Level::kFailure) == 0;
}

std::string findings_text(const std::vector<Finding>& findings) {
  std::size_t area = 0;
  std::size_t name = 0;
  for (const Finding& finding : findings) {
    area = std::max(area, finding.area.size());
    name = std::max(name, finding.name.size());
  }
  std::string text;
  for (const Finding& finding : findings) {
    text += fmt::format("{:<4}  {:<{}}  {:<{}}  {}", level_name(finding.level), finding.area, area,
                        finding.name, name, finding.text);
    if (!finding.advice.empty()) text += "; " + finding.advice;
    text += '\n';
  }
  return text + verdict(findings) + "\n";
}

std::string findings_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings) {
    list.push_back({{"area", finding.area},
                    {"name", finding.name},
                    {"level", level_name(finding.level)},
                    {"text", finding.text},
                    {"advice", finding.advice}});
  }
  const Json json = {{"healthy", is_healthy(findings)},
                     {"kernels", kernels::active_kernels().name},
                     {"findings", std::move(list)}};
  return escape_line_ends(json.dump(-1, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace locket::cli
