#include "model/even_shares.h"

#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <vector>

namespace locket::model {
namespace {

struct Entry {
  std::size_t units;
  std::uint64_t cost;

  double unit_cost() const { return static_cast<double>(cost) / static_cast<double>(units); }
};

EvenShares make_shares(const std::vector<Entry>& entries) {
  EvenShares shares;
  for (const Entry& entry : entries) shares.add(entry.units, entry.cost);
  return shares;
}

// Which part takes each unit of every entry; fails if a unit is taken twice.
std::vector<std::vector<int>> takers(const std::vector<Entry>& entries, std::size_t parts) {
  const EvenShares shares = make_shares(entries);
  std::vector<std::vector<int>> taken;
  for (const Entry& entry : entries) taken.emplace_back(entry.units, -1);
  for (std::size_t part = 0; part < parts; ++part) {
    shares.for_each(shares.part(part, parts), [&](std::size_t entry, Share units) {
      EXPECT_LT(units.begin, units.end);
      for (std::size_t unit = units.begin; unit < units.end; ++unit) {
        EXPECT_EQ(taken[entry][unit], -1);
        taken[entry][unit] = static_cast<int>(part);
      }
    });
  }
  return taken;
}

const std::vector<std::vector<Entry>> kCases = {{{1, 1}},
                                                {{1, 7}, {1, 1}, {1, 9}},
                                                {{72, 1000}, {72, 1000}, {72, 1000}},
                                                {{72, 100}, {5, 9000}, {1, 1}, {64, 3}},
                                                {{3, 1'000'000'000'000}, {2, 1}}};

TEST(EvenSharesTest, EveryUnitIsTakenOnceAndInOrder) {
  for (const auto& entries : kCases) {
    for (const std::size_t parts : {1, 2, 3, 7, 64}) {
      int last = 0;
      for (const auto& entry : takers(entries, parts)) {
        EXPECT_TRUE(std::ranges::is_sorted(entry));
        EXPECT_GE(entry.front(), last);
        EXPECT_LT(entry.back(), static_cast<int>(parts));
        last = entry.back();
      }
    }
  }
}

// The cost of every part.
std::vector<double> part_costs(const std::vector<Entry>& entries, std::size_t parts) {
  std::vector<double> costs(parts);
  const auto taken = takers(entries, parts);
  for (std::size_t entry = 0; entry < entries.size(); ++entry) {
    for (const int part : taken[entry]) {
      costs[static_cast<std::size_t>(part)] += entries[entry].unit_cost();
    }
  }
  return costs;
}

TEST(EvenSharesTest, PartsDifferByLessThanTheDearestUnit) {
  for (const auto& entries : kCases) {
    double total = 0;
    double dearest = 0;
    for (const Entry& entry : entries) {
      total += static_cast<double>(entry.cost);
      dearest = std::max(dearest, entry.unit_cost());
    }
    for (const std::size_t parts : {1, 2, 3, 7}) {
      const std::vector<double> costs = part_costs(entries, parts);
      const double even = total / static_cast<double>(parts);
      EXPECT_LE(*std::ranges::max_element(costs), even + dearest * (1 + 1e-9));
    }
  }
}

TEST(EvenSharesTest, CostDecidesAndNotTheNumberOfUnits) {
  const auto taken = takers({{10, 90}, {10, 10}}, 2);
  EXPECT_EQ(std::ranges::count(taken[0], 0), 6);
  EXPECT_EQ(std::ranges::count(taken[1], 0), 0);
}

TEST(EvenSharesTest, RunsAsManyPartsAsTheCostIsWorthAndNoneIsEmpty) {
  WorkerPool workers(3);
  constexpr std::uint64_t kDear = std::uint64_t{1} << 40;
  struct Case {
    Entry all;
    std::size_t parts;
  };
  for (const auto& [all, parts] :
       {Case{{30, 1}, 1}, Case{{30, kDear}, workers.pieces_for(kDear)}, Case{{2, kDear}, 2}}) {
    std::atomic<std::size_t> calls = 0;
    std::atomic<std::size_t> units = 0;
    make_shares({all}).run(workers, [&](Share share) {
      EXPECT_LT(share.begin, share.end);
      ++calls;
      units += share.end - share.begin;
    });
    EXPECT_EQ(calls, parts);
    EXPECT_EQ(units, all.units);
  }
}

}  // namespace
}  // namespace locket::model
