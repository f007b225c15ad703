#include "tensor/shape.h"

namespace locket::tensor {

Result<std::int64_t> element_count(const Shape& shape) {
  constexpr std::int64_t kLimit = std::int64_t{1} << 62;
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      return fail(ErrorCode::kBadRequest, "shape " + to_string(shape) + " has a negative extent");
    }
    if (extent != 0 && count > kLimit / extent) {
      return fail(ErrorCode::kBadRequest, "shape " + to_string(shape) + " has too many elements");
    }
    count *= extent;
  }
  return count;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (const std::int64_t extent : shape) {
    if (text.size() > 1) text += ", ";
    text += std::to_string(extent);
  }
  return text + "]";
}

}  // namespace locket::tensor
