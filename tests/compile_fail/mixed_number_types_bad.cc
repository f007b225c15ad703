// expect: no match for .operator=.
#include "numerics/bf16.h"
#include "numerics/fp8_e4m3.h"

float use(float x) {
  const locket::numerics::Bf16 wide = locket::numerics::to_bf16(x);
  locket::numerics::Fp8E4m3 code = locket::numerics::to_fp8_e4m3(x);
  code = wide;
  return locket::numerics::to_float(code);
}
