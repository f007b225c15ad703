#include "server/bill_book.h"

#include "server/prices.h"

namespace locket::server {

void BillBook::add(const std::string& tenant, const Bill& bill, double unix_seconds) {
  const std::string today = utc_day(unix_seconds);
  const std::lock_guard lock(mutex_);
  Day& day = days_[today];
  const bool is_known = day.contains(tenant) || day.size() < kMostTenants;
  DayBill& sum = day[is_known ? tenant : kOtherTenants];
  sum.day = today;
  sum.tenant = is_known ? tenant : kOtherTenants;
  ++sum.requests;
  sum.hit += bill.hit;
  sum.miss += bill.miss;
  sum.output += bill.output;
  while (days_.size() > kMostDays) days_.erase(days_.begin());
}

std::vector<DayBill> BillBook::days() const {
  const std::lock_guard lock(mutex_);
  std::vector<DayBill> all;
  for (const auto& [name, day] : days_) {
    for (const auto& [tenant, sum] : day) all.push_back(sum);
  }
  return all;
}

}  // namespace locket::server
