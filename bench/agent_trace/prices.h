// What a trace costs at the list price of V4.1-Flash, in dollars. All row kinds are billed at the
// same prices, so that only the hit rate differs.
#pragma once

#include <cstdint>

#include "agent_trace/calendar.h"

namespace locket::agent_trace {

// Dollars for a million tokens off peak; twice that at peak.
struct Prices {
  double miss = 0.15;
  double hit = 0.003;
  double output = 0.60;
};

struct BilledTokens {
  std::int64_t prompt = 0;
  std::int64_t hit = 0;
  std::int64_t replayed = 0;  // of the hit tokens, computed again
  std::int64_t answer = 0;
};

struct Bill {
  double dollars = 0;
  double dollars_without = 0;  // without any memory
  double dollars_strict = 0;   // replayed tokens at the price of a miss

  void add(Millis time, const BilledTokens& tokens, const Prices& prices = {}) {
    const double scale = (is_peak(time) ? 2.0 : 1.0) * 1e-6;
    const auto cost = [&](std::int64_t hit) {
      return scale * (static_cast<double>(tokens.prompt - hit) * prices.miss +
                      static_cast<double>(hit) * prices.hit +
                      static_cast<double>(tokens.answer) * prices.output);
    };
    dollars += cost(tokens.hit);
    dollars_without += cost(0);
    dollars_strict += cost(tokens.hit - tokens.replayed);
  }
};

}  // namespace locket::agent_trace
