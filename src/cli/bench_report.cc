#include "cli/bench_report.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/text_table.h"

namespace locket::cli {
namespace {

using Align = TextTable::Align;
using kernels::BestAndMedian;
using kernels::PeakUnit;

constexpr double kGiga = 1e9;

std::string figure(double value) {
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.2f}", value);
}

std::string bound_text(const std::optional<double>& bound) { return bound ? figure(*bound) : "-"; }

// "goal", "floor", "below"; nothing where there is no floor.
std::string verdict(const BenchRow& row) {
  if (!row.bounds.floor) return "";
  if (reaches(row, row.bounds.goal)) return "goal";
  return reaches(row, row.bounds.floor) ? "floor" : "below";
}

std::string rate_text(const BestAndMedian& rate) {
  return rate.best > 0 ? fmt::format("{:.1f}", rate.median / kGiga) : "-";
}

std::string limits_text(const kernels::MachineLimits& limits) {
  TextTable table({Align::kLeft, Align::kRight, Align::kRight});
  table.add_row({"limits of this machine, in G a second", "1 thread",
                 limits.threads == 1 ? "" : fmt::format("{} threads", limits.threads)});
  const auto add = [&](const std::string& what, const kernels::ThreadedRate& rate) {
    if (rate.one.best == 0) return;
    table.add_row({what, rate_text(rate.one), limits.threads == 1 ? "" : rate_text(rate.all)});
  };
  add("plain read, bytes", limits.read);
  for (std::size_t i = 0; i < static_cast<std::size_t>(PeakUnit::kCount); ++i) {
    const auto unit = static_cast<PeakUnit>(i);
    add(fmt::format("{} operations", kernels::peak_unit_name(unit)), limits.peak(unit));
  }
  if (limits.disk_read.best > 0) {
    table.add_row({"O_DIRECT read, bytes, 4 threads", rate_text(limits.disk_read), ""});
  }
  return table.text(0) + fmt::format("waking the threads and waiting for them: {:.1f} us\n",
                                     limits.fork_join.median * 1e6);
}

nlohmann::ordered_json rate_json(const kernels::ThreadedRate& rate) {
  return {{"one", {{"best", rate.one.best}, {"median", rate.one.median}}},
          {"all", {{"best", rate.all.best}, {"median", rate.all.median}}}};
}

nlohmann::ordered_json limits_json(const kernels::MachineLimits& limits) {
  nlohmann::ordered_json peaks = nlohmann::ordered_json::object();
  for (std::size_t i = 0; i < static_cast<std::size_t>(PeakUnit::kCount); ++i) {
    const auto unit = static_cast<PeakUnit>(i);
    if (limits.peak(unit).one.best == 0) continue;
    peaks[std::string(kernels::peak_unit_name(unit))] = rate_json(limits.peak(unit));
  }
  return {{"threads", limits.threads},
          {"read_bytes_per_second", rate_json(limits.read)},
          {"operations_per_second", peaks},
          {"disk_bytes_per_second", limits.disk_read.median},
          {"fork_join_seconds", limits.fork_join.median}};
}

nlohmann::ordered_json bound_json(const std::optional<double>& bound) {
  return bound ? nlohmann::ordered_json(*bound) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json row_json(const BenchRow& row) {
  return {{"group", row.group},
          {"key", row.key},
          {"what", row.what},
          {"kind", row.is_ratio ? "ratio" : "figure"},
          {"better", row.bounds.sense == BenchSense::kLower ? "lower" : "higher"},
          {"floor", bound_json(row.bounds.floor)},
          {"goal", bound_json(row.bounds.goal)},
          {"median", row.trials.median},
          {"best", row.trials.best},
          {"spread", row.trials.spread},
          {"detail", row.detail}};
}

}  // namespace

std::string bench_text(const BenchReport& report) {
  TextTable table({Align::kLeft, Align::kLeft, Align::kRight, Align::kRight, Align::kRight,
                   Align::kRight, Align::kLeft, Align::kLeft});
  table.add_row({"", "", "floor", "goal", "median", "best", "", ""});
  for (const BenchRow& row : report.rows) {
    table.add_row({row.group, row.what, bound_text(row.bounds.floor), bound_text(row.bounds.goal),
                   figure(row.trials.median), figure(row.trials.best), verdict(row), row.detail});
  }
  std::string text = fmt::format("{}, kernels {}, {} runs{}\n\n{}\n{}", report.machine,
                                 report.kernels, report.runs, report.is_quick ? ", quick" : "",
                                 limits_text(report.limits), table.text(0));
  for (const std::string& what : report.left_out) text += fmt::format("left out: {}\n", what);
  return text;
}

std::string bench_json(const BenchReport& report) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const BenchRow& row : report.rows) rows.push_back(row_json(row));
  const nlohmann::ordered_json json = {{"machine", report.machine},
                                       {"kernels", report.kernels},
                                       {"quick", report.is_quick},
                                       {"runs", report.runs},
                                       {"limits", limits_json(report.limits)},
                                       {"rows", rows},
                                       {"left_out", report.left_out}};
  return json.dump(1) + "\n";
}

}  // namespace locket::cli
