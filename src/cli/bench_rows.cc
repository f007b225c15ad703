#include "cli/bench_rows.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/check.h"
#include "base/clock.h"

namespace locket::cli {

double median_of(std::vector<double> values) {
  LOCKET_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

BenchTrials sum_up_trials(std::vector<double> values, BenchSense sense) {
  LOCKET_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  return {.median = values[values.size() / 2],
          .best = sense == BenchSense::kLower ? values.front() : values.back(),
          .spread = values.back() - values.front()};
}

bool reaches(const BenchRow& row, const std::optional<double>& bound) {
  if (!bound) return true;
  return row.bounds.sense == BenchSense::kLower ? row.trials.median <= *bound
                                                : row.trials.median >= *bound;
}

std::vector<std::vector<double>> run_in_turn(std::size_t runs,
                                             const std::vector<BenchSide>& sides) {
  std::vector<std::vector<double>> seconds(sides.size());
  for (const BenchSide& side : sides) side();
  for (std::size_t run = 0; run < runs; ++run) {
    for (std::size_t i = 0; i < sides.size(); ++i) {
      const double begin = monotonic_seconds();
      sides[i]();
      seconds[i].push_back(monotonic_seconds() - begin);
    }
  }
  return seconds;
}

BenchTrials ratio_trials(const std::vector<double>& upper, const std::vector<double>& lower,
                         BenchSense sense) {
  LOCKET_CHECK(upper.size() == lower.size());
  std::vector<double> ratios;
  for (std::size_t i = 0; i < upper.size(); ++i) ratios.push_back(upper[i] / lower[i]);
  return sum_up_trials(std::move(ratios), sense);
}

std::string rates_text(double amount, const std::vector<double>& ours,
                       const std::vector<double>& limit, const std::string& unit) {
  constexpr double kGiga = 1e9;
  return fmt::format("{:.1f} of {:.1f} G{}/s", amount / median_of(ours) / kGiga,
                     amount / median_of(limit) / kGiga, unit);
}

}  // namespace locket::cli
