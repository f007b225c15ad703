#include "numerics/bf16.h"

locket::numerics::Bf16 use(float x) {
  const locket::numerics::Bf16 value = locket::numerics::to_bf16(x);
  return value;
}
