#include "server/caller_limits.h"

#include <gtest/gtest.h>
#include <optional>
#include <thread>
#include <vector>

namespace locket::server {
namespace {

TEST(CallerLimitsTest, OneMoreThanTheLimitIsRefused) {
  CallerLimits limits(2);
  const auto first = limits.enter("ann");
  auto second = limits.enter("ann");
  EXPECT_NE(first, nullptr);
  EXPECT_NE(second, nullptr);
  EXPECT_EQ(limits.enter("ann"), nullptr);
  EXPECT_EQ(limits.count("ann"), 2U);
  second.reset();
  EXPECT_EQ(limits.count("ann"), 1U);
  EXPECT_NE(limits.enter("ann"), nullptr);
}

TEST(CallerLimitsTest, CallersDoNotShareTheirLimit) {
  CallerLimits limits(1);
  const auto ann = limits.enter("ann");
  EXPECT_NE(limits.enter("bob"), nullptr);
  EXPECT_EQ(limits.enter("ann"), nullptr);
}

TEST(CallerLimitsTest, ZeroIsNoLimit) {
  CallerLimits limits(0);
  std::vector<std::shared_ptr<CallerLimits::Ticket>> tickets;
  for (int i = 0; i < 1000; ++i) tickets.push_back(limits.enter("ann"));
  EXPECT_NE(tickets.back(), nullptr);
  EXPECT_EQ(limits.count("ann"), 1000U);
}

TEST(CallerLimitsTest, ATicketMayOutliveTheLimits) {
  std::optional<CallerLimits> limits(std::in_place, 1);
  auto ticket = limits->enter("ann");
  limits.reset();
  ticket.reset();
  EXPECT_EQ(ticket, nullptr);
}

TEST(CallerLimitsTest, ManyThreadsNeverPassTheLimit) {
  CallerLimits limits(3);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < 1000; ++i) {
        const auto ticket = limits.enter("ann");
        EXPECT_LE(limits.count("ann"), 3U);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(limits.count("ann"), 0U);
}

}  // namespace
}  // namespace locket::server
