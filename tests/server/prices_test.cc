#include "server/prices.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <string>
#include <unistd.h>

#include "base/file.h"
#include "server/bill_book.h"

namespace locket::server {
namespace {

constexpr double kDay = 86400;
constexpr double kHour = 3600;
constexpr double kMonday = 1795996800;  // 2026-11-30T00:00:00Z

Result<std::optional<Prices>> read_text_as_file(const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("locket_prices_" + std::to_string(::getpid()) + ".json");
  EXPECT_TRUE(write_whole_file(path, std::as_bytes(std::span(text))));
  auto prices = read_prices(path.string());
  std::filesystem::remove(path);
  return prices;
}

std::string refusal(const Result<std::optional<Prices>>& prices) {
  return prices ? "none" : prices.error().message;
}

TEST(PricesTest, OffIsNoPriceAndPublishedTheBuiltInOnes) {
  const auto off = read_prices("off");
  ASSERT_TRUE(off);
  EXPECT_FALSE(off->has_value());
  const auto published = read_prices("published");
  ASSERT_TRUE(published);
  EXPECT_EQ(**published, (Prices{.hit = 0.003, .miss = 0.15, .output = 0.60, .peak = 2}));
}

TEST(PricesTest, AListChangesWhatItNames) {
  const auto prices = read_prices("miss=1,peak=1.5");
  ASSERT_TRUE(prices) << refusal(prices);
  EXPECT_EQ(**prices, (Prices{.hit = 0.003, .miss = 1, .output = 0.60, .peak = 1.5}));
}

TEST(PricesTest, AFileHasTheSameNames) {
  const auto prices = read_text_as_file(R"({"hit": 0, "output": 2.5})");
  ASSERT_TRUE(prices) << refusal(prices);
  EXPECT_EQ(**prices, (Prices{.hit = 0, .miss = 0.15, .output = 2.5, .peak = 2}));
}

TEST(PricesTest, RefusesWhatIsNoPrice) {
  for (const std::string text : {"hit=-1", "hit=much", "hit=", "hit=1e9", "hit=nan", "hit=1x"}) {
    EXPECT_NE(refusal(read_prices(text)).find("prices: hit is"), std::string::npos) << text;
  }
  EXPECT_NE(refusal(read_prices("hits=1")).find("\"hits\""), std::string::npos);
  EXPECT_NE(refusal(read_prices("cheap")).find("published"), std::string::npos);
  EXPECT_NE(refusal(read_prices("")).find("nothing"), std::string::npos);
  EXPECT_NE(refusal(read_prices("/nowhere/prices.json")).find("/nowhere"), std::string::npos);
  EXPECT_NE(refusal(read_text_as_file(R"({"hit": "1"})")).find("hit is \"1\""), std::string::npos);
  EXPECT_NE(refusal(read_text_as_file(R"({"cost": 1})")).find("\"cost\""), std::string::npos);
  EXPECT_NE(refusal(read_text_as_file("[1]")).find("JSON object"), std::string::npos);
  EXPECT_NE(refusal(read_text_as_file("{")).find("JSON object"), std::string::npos);
}

TEST(PricesTest, PeakHoursBeginWithTheirFirstSecondAndEndBeforeTheirLast) {
  for (int day = 0; day < 7; ++day) {
    const double midnight = kMonday + day * kDay;
    for (int hour = 0; hour < 24; ++hour) {
      const bool is_peak = day < 5 && ((hour >= 1 && hour < 4) || (hour >= 6 && hour < 10));
      EXPECT_EQ(is_peak_time(midnight + hour * kHour), is_peak) << day << " " << hour;
      EXPECT_EQ(is_peak_time(midnight + (hour + 1) * kHour - 0.25), is_peak) << day << " " << hour;
    }
  }
}

TEST(PricesTest, DaysAreThoseOfUtc) {
  EXPECT_EQ(utc_day(0), "1970-01-01");
  EXPECT_EQ(utc_day(kMonday - 0.5), "2026-11-29");
  EXPECT_EQ(utc_day(kMonday), "2026-11-30");
  EXPECT_EQ(utc_day(1835395200), "2028-02-29");
}

TEST(PricesTest, ABillCountsHitsMissesAndOutput) {
  const service::RequestUsage usage = {
      .prompt_tokens = 3'000'000, .hit_tokens = 2'000'000, .completion_tokens = 500'000};
  const Prices prices = {.hit = 0.003, .miss = 0.15, .output = 0.60, .peak = 2};
  const Bill bill = bill_for(prices, usage, kMonday);
  EXPECT_FALSE(bill.is_peak);
  EXPECT_NEAR(bill.hit, 0.006, 1e-12);
  EXPECT_NEAR(bill.miss, 0.15, 1e-12);
  EXPECT_NEAR(bill.output, 0.30, 1e-12);
  EXPECT_NEAR(bill.total(), 0.456, 1e-12);
  const Bill peak = bill_for(prices, usage, kMonday + kHour);
  EXPECT_TRUE(peak.is_peak);
  EXPECT_NEAR(peak.total(), 0.912, 1e-12);
}

TEST(BillBookTest, SumsByDayAndTenant) {
  BillBook book;
  book.add("bob", {.hit = 1, .miss = 2, .output = 3}, kMonday);
  book.add("ann", {.hit = 1, .miss = 2, .output = 3}, kMonday);
  book.add("bob", {.hit = 10, .miss = 20, .output = 30}, kMonday + 1);
  book.add("bob", {.hit = 5, .miss = 5, .output = 5}, kMonday + kDay);
  const auto days = book.days();
  ASSERT_EQ(days.size(), 3U);
  EXPECT_EQ(days[0].tenant, "ann");
  EXPECT_EQ(days[1].tenant, "bob");
  EXPECT_EQ(days[1].day, "2026-11-30");
  EXPECT_EQ(days[1].requests, 2U);
  EXPECT_EQ(days[1].hit, 11);
  EXPECT_EQ(days[1].miss, 22);
  EXPECT_EQ(days[1].output, 33);
  EXPECT_EQ(days[2].day, "2026-12-01");
  EXPECT_EQ(days[2].requests, 1U);
}

TEST(BillBookTest, ForgetsOldDays) {
  BillBook book;
  for (int day = 0; day < 10; ++day) book.add("ann", {.hit = 1}, kMonday + day * kDay);
  const auto days = book.days();
  ASSERT_EQ(days.size(), BillBook::kMostDays);
  EXPECT_EQ(days.front().day, "2026-12-03");
  EXPECT_EQ(days.back().day, "2026-12-09");
}

TEST(BillBookTest, TenantsBeyondTheLimitShareASum) {
  BillBook book;
  for (std::size_t tenant = 0; tenant < BillBook::kMostTenants + 5; ++tenant) {
    book.add("t" + std::to_string(tenant), {.hit = 1}, kMonday);
  }
  const auto days = book.days();
  ASSERT_EQ(days.size(), BillBook::kMostTenants + 1);
  EXPECT_EQ(days.front().tenant, BillBook::kOtherTenants);
  EXPECT_EQ(days.front().requests, 5U);
}

}  // namespace
}  // namespace locket::server
