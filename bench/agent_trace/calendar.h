// Time of the traffic: milliseconds since a Monday, 00:00 UTC. Pure functions.
#pragma once

#include <cstdint>

namespace locket::agent_trace {

using Millis = std::int64_t;

inline constexpr Millis kSecond = 1000;
inline constexpr Millis kMinute = 60 * kSecond;
inline constexpr Millis kHour = 60 * kMinute;
inline constexpr Millis kDay = 24 * kHour;

// Monday is 0.
constexpr std::int64_t weekday(Millis time) { return time / kDay % 7; }
constexpr bool is_weekend(Millis time) { return weekday(time) >= 5; }

// When tokens cost twice as much: Monday to Friday, 01:00-04:00 and 06:00-10:00 UTC.
constexpr bool is_peak(Millis time) {
  const Millis clock = time % kDay;
  const bool is_peak_hour =
      (clock >= 1 * kHour && clock < 4 * kHour) || (clock >= 6 * kHour && clock < 10 * kHour);
  return !is_weekend(time) && is_peak_hour;
}

// When a user who wants to go on at `time` does so: at once within the hours of work, 09:00-19:00
// on weekdays, else at the beginning of the next ones. Hours are local, `zone` before UTC.
constexpr Millis next_working_time(Millis time, Millis zone) {
  // One week on, so that no local time is negative.
  Millis local = time + zone + 7 * kDay;
  const Millis clock = local % kDay;
  if (clock >= 19 * kHour) local += kDay - clock + 9 * kHour;
  if (clock < 9 * kHour) local += 9 * kHour - clock;
  while (is_weekend(local)) local += kDay;
  return local - zone - 7 * kDay;
}

}  // namespace locket::agent_trace
