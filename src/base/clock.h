// The program's only clock: monotonic seconds, for measurements that are shown, never for results.
#pragma once

namespace locket {

// Seconds since an arbitrary start; never goes back.
double monotonic_seconds();

}  // namespace locket
