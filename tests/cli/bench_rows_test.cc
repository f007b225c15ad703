// The arithmetic of ratios, and the report in both forms, on made-up trials.
#include "cli/bench_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/bench_report.h"

namespace locket::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

BenchRow row_with(double median, const BenchBounds& bounds) {
  return {.group = "H2",
          .key = "matvec",
          .what = "experts over plain read",
          .bounds = bounds,
          .trials = {.median = median, .best = median, .spread = 0.25},
          .detail = "4.0 of 5.0 GB/s"};
}

BenchReport report_with(BenchRow row) {
  return {.machine = "cpu-1-2t",
          .kernels = "avx512",
          .is_quick = true,
          .runs = 3,
          .limits = {},
          .rows = {std::move(row)},
          .left_out = {"H1 decode: needs --slice"}};
}

constexpr BenchBounds kHigher = {.sense = BenchSense::kHigher, .floor = 0.8, .goal = 0.92};
constexpr BenchBounds kLower = {.sense = BenchSense::kLower, .floor = 1.6, .goal = 1.4};

TEST(BenchRowsTest, TheBestIsTheSmallestWhereLessIsBetter) {
  const BenchTrials higher = sum_up_trials({3, 1, 2}, BenchSense::kHigher);
  EXPECT_EQ(higher.median, 2);
  EXPECT_EQ(higher.best, 3);
  EXPECT_EQ(higher.spread, 2);
  EXPECT_EQ(sum_up_trials({3, 1, 2}, BenchSense::kLower).best, 1);
}

TEST(BenchRowsTest, ARatioIsTakenRunByRunNotOfTheMedians) {
  // The machine was slower in the second run: both sides took twice as long.
  const BenchTrials trials = ratio_trials({1, 2, 1}, {2, 4, 2}, BenchSense::kHigher);
  EXPECT_EQ(trials.median, 0.5);
  EXPECT_EQ(trials.spread, 0);
}

TEST(BenchRowsTest, SidesRunInTurnAndTheFirstRoundDoesNotCount) {
  std::string order;
  const auto seconds =
      run_in_turn(2, {[&] { order += 'a'; }, [&] { order += 'b'; }, [&] { order += 'c'; }});
  EXPECT_EQ(order, "abcabcabc");
  ASSERT_EQ(seconds.size(), 3U);
  for (const auto& side : seconds) EXPECT_EQ(side.size(), 2U);
}

TEST(BenchRowsTest, ABoundIsReachedFromTheRightSide) {
  EXPECT_TRUE(reaches(row_with(0.80, kHigher), kHigher.floor));
  EXPECT_FALSE(reaches(row_with(0.79, kHigher), kHigher.floor));
  EXPECT_TRUE(reaches(row_with(1.6, kLower), kLower.floor));
  EXPECT_FALSE(reaches(row_with(1.61, kLower), kLower.floor));
  EXPECT_TRUE(reaches(row_with(0, {}), std::nullopt));
}

TEST(BenchRowsTest, TheTableSaysWhatWasReached) {
  EXPECT_THAT(bench_text(report_with(row_with(0.95, kHigher))), HasSubstr("0.95  goal"));
  EXPECT_THAT(bench_text(report_with(row_with(0.85, kHigher))), HasSubstr("0.85  floor"));
  EXPECT_THAT(bench_text(report_with(row_with(0.50, kHigher))), HasSubstr("0.50  below"));
  const std::string without = bench_text(report_with(row_with(0.5, {})));
  EXPECT_THAT(without, Not(HasSubstr("below")));
  EXPECT_THAT(without, HasSubstr("left out: H1 decode: needs --slice"));
}

TEST(BenchRowsTest, TheJsonHoldsWhatTheGateReads) {
  BenchRow row = row_with(1.5, kLower);
  row.bounds.goal = std::nullopt;
  const auto json = nlohmann::json::parse(bench_json(report_with(row)));
  EXPECT_EQ(json.at("machine"), "cpu-1-2t");
  EXPECT_EQ(json.at("kernels"), "avx512");
  EXPECT_EQ(json.at("quick"), true);
  const auto& first = json.at("rows").at(0);
  EXPECT_EQ(first.at("key"), "matvec");
  EXPECT_EQ(first.at("kind"), "ratio");
  EXPECT_EQ(first.at("better"), "lower");
  EXPECT_EQ(first.at("floor"), 1.6);
  EXPECT_TRUE(first.at("goal").is_null());
  EXPECT_EQ(first.at("median"), 1.5);
  EXPECT_EQ(first.at("spread"), 0.25);
  row.is_ratio = false;
  EXPECT_EQ(nlohmann::json::parse(bench_json(report_with(row))).at("rows").at(0).at("kind"),
            "figure");
}

TEST(BenchRowsTest, RatesAreToldInGigaUnits) {
  EXPECT_EQ(rates_text(4e9, {2, 1, 4}, {1, 1, 1}, "B"), "2.0 of 4.0 GB/s");
}

}  // namespace
}  // namespace locket::cli
