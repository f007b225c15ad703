// What `locket bench` measures, as rows of one table: a ratio (or a figure), the floor that is kept
// and the goal. Every ratio is taken within one run: its two sides are measured in turn, so that
// what else the machine does meets both. Plain data.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace locket::cli {

// Which way is better.
enum class BenchSense { kHigher, kLower, kCount };

// What a row is held against.
struct BenchBounds {
  BenchSense sense = BenchSense::kHigher;
  std::optional<double> floor = {};  // to keep
  std::optional<double> goal = {};
};

// What several trials gave.
struct BenchTrials {
  double median = 0;
  double best = 0;
  double spread = 0;  // largest minus smallest
};
BenchTrials sum_up_trials(std::vector<double> values, BenchSense sense);

struct BenchRow {
  std::string group;  // "H2"
  std::string key;    // "fp4_matvec_over_read": its name in files
  std::string what;   // for people
  BenchBounds bounds = {};
  BenchTrials trials = {};
  bool is_ratio = true;     // ratios are compared between runs, figures are only shown
  std::string detail = {};  // the two sides: "41.2 of 52.0 GB/s"
};

// Whether the median reaches the bound; true without one.
bool reaches(const BenchRow& row, const std::optional<double>& bound);

// Seconds of each side in each run: every side once without counting, then all sides once a run.
// A side is measured for as long as it takes; whoever calls makes both sides alike long.
using BenchSide = std::function<void()>;
std::vector<std::vector<double>> run_in_turn(std::size_t runs, const std::vector<BenchSide>& sides);

// upper[i] / lower[i], and what that gives.
BenchTrials ratio_trials(const std::vector<double>& upper, const std::vector<double>& lower,
                         BenchSense sense);

double median_of(std::vector<double> values);

// Median rates of two sides that moved `amount` each: "41.2 of 52.0 GB/s".
std::string rates_text(double amount, const std::vector<double>& ours,
                       const std::vector<double>& limit, const std::string& unit);

}  // namespace locket::cli
