// A view of stored elements: dtype, shape and bytes that somebody else owns (a checkpoint, a
// buffer). Valid as long as its owner. Row-major, contiguous.
#pragma once

#include <cstddef>
#include <span>

#include "numerics/dtype.h"
#include "tensor/shape.h"

namespace locket::tensor {

struct TensorView {
  numerics::Dtype dtype = numerics::Dtype::kF32;
  Shape shape;
  std::span<const std::byte> bytes;
};

}  // namespace locket::tensor
