// Sets the FTZ and DAZ bits of this thread while it lives: the float32 steps of a dot product then
// treat denormals as sum_order.h states. Everything outside dot products runs without it.
#pragma once

#include <xmmintrin.h>

namespace locket::kernels::cpu {

class FlushScope {
 public:
  FlushScope() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | kFlushToZero | kDenormalsAreZero); }
  FlushScope(const FlushScope&) = delete;
  FlushScope& operator=(const FlushScope&) = delete;
  ~FlushScope() { _mm_setcsr(saved_); }

 private:
  static constexpr unsigned kFlushToZero = 0x8000;
  static constexpr unsigned kDenormalsAreZero = 0x0040;

  unsigned saved_;
};

}  // namespace locket::kernels::cpu
