#include "numerics/dtype.h"

#include "base/check.h"

namespace locket::numerics {

std::string_view dtype_name(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF32:
      return "F32";
    case Dtype::kF16:
      return "F16";
    case Dtype::kBf16:
      return "BF16";
    case Dtype::kFp8E4m3:
      return "F8_E4M3";
    case Dtype::kFp8E5m2:
      return "F8_E5M2";
    case Dtype::kE8m0:
      return "F8_E8M0";
    case Dtype::kFp4E2m1:
      return "F4";
    case Dtype::kI8:
      return "I8";
    case Dtype::kU8:
      return "U8";
    case Dtype::kI32:
      return "I32";
    case Dtype::kI64:
      return "I64";
    case Dtype::kBool:
      return "BOOL";
    case Dtype::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::size_t bits_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kFp4E2m1:
      return 4;
    case Dtype::kFp8E4m3:
    case Dtype::kFp8E5m2:
    case Dtype::kE8m0:
    case Dtype::kI8:
    case Dtype::kU8:
    case Dtype::kBool:
      return 8;
    case Dtype::kF16:
    case Dtype::kBf16:
      return 16;
    case Dtype::kF32:
    case Dtype::kI32:
      return 32;
    case Dtype::kI64:
      return 64;
    case Dtype::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace locket::numerics
