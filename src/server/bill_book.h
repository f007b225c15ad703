// Sums of bills, per day and caller. Kept for the last days only, and for a limited number of
// callers, so that it cannot grow without end. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/reply_writer.h"

namespace locket::server {

struct DayBill {
  std::string day;     // in UTC, as "2026-11-30"
  std::string tenant;  // name of the API key; empty without keys
  std::uint64_t requests = 0;
  double hit = 0;  // US dollars
  double miss = 0;
  double output = 0;
};

class BillBook {
 public:
  static constexpr std::size_t kMostDays = 7;
  static constexpr std::size_t kMostTenants = 1000;  // of a day; the rest share one sum
  static constexpr const char* kOtherTenants = "(others)";

  void add(const std::string& tenant, const Bill& bill, double unix_seconds);
  // By day, then by tenant.
  std::vector<DayBill> days() const;

 private:
  using Day = std::map<std::string, DayBill>;
  mutable std::mutex mutex_;
  std::map<std::string, Day> days_;
};

}  // namespace locket::server
