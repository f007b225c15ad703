// The extents of a tensor, outermost first; element counts are checked for overflow.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace locket::tensor {

using Shape = std::vector<std::int64_t>;

// Product of the extents; kBadRequest if an extent is negative or the product exceeds 2^62.
[[nodiscard]] Result<std::int64_t> element_count(const Shape& shape);

// "[3, 4]"
std::string to_string(const Shape& shape);

}  // namespace locket::tensor
