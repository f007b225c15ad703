// What requests would cost: prices per million tokens, with their peak hours, so that people see
// what the memory saves. The prices that are built in are those published for DeepSeek-V4.1-Flash
// (November 2026). Peak hours are Monday to Friday, 01:00 to 04:00 and 06:00 to 10:00 UTC; the
// published list takes Chinese holidays out, this program has no calendar and does not. Pure
// functions, thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "server/reply_writer.h"
#include "service/request_sink.h"

namespace locket::server {

// US dollars per million tokens.
struct Prices {
  double hit = 0.003;  // of the prompt, remembered
  double miss = 0.15;  // of the prompt, not remembered
  double output = 0.60;
  double peak = 2;  // all of them times this in peak hours

  friend bool operator==(const Prices&, const Prices&) = default;
};

// "off": none. "published": those built in. "hit=0.003,miss=0.15,output=0.60,peak=2": these, and
// the published ones for names that are left out. FILE.json: the same names as members of an
// object. kBadRequest names what is wrong.
[[nodiscard]] Result<std::optional<Prices>> read_prices(std::string_view text);

// `unix_seconds`: seconds since 1970.
bool is_peak_time(double unix_seconds);
// The day in UTC, as "2026-11-30".
std::string utc_day(double unix_seconds);

// Tokens that are replayed are part of what was remembered, and cost no more than that.
Bill bill_for(const Prices& prices, const service::RequestUsage& usage, double unix_seconds);

}  // namespace locket::server
