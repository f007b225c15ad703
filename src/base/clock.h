// The program's only clocks: monotonic seconds, for measurements that are shown, never for results;
// and the wall clock, for ages that outlive the process. Thread-safe.
#pragma once

namespace locket {

// Seconds since an arbitrary start; never goes back.
double monotonic_seconds();

// Seconds since 1970. May go back, or be wrong: only for ages and for people.
double wall_seconds();

}  // namespace locket
