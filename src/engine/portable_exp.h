// exp() in double from additions and multiplications in a fixed order, so that a draw
// does not depend on the machine's math library. Thread-safe.
#pragma once

namespace locket::engine {

// e^x for x <= 0, minus infinity included; 0 below -745.14 or so. REQUIRES: x <= 0 (never NaN).
double portable_exp(double x);

}  // namespace locket::engine
