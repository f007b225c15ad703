// The header that a safetensors file begins with, from what its tensors will be.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "checkpoint/safetensors_stream.h"

namespace locket::checkpoint::internal {

// Bytes of the tensor; kBadRequest if the shape is impossible.
[[nodiscard]] Result<std::uint64_t> byte_count_of(const PlannedTensor& tensor);

// The header with its length in front; tensors lie in the given order without holes. kBadRequest
// for a name that occurs twice, is reserved or is not UTF-8, and for an impossible shape.
[[nodiscard]] Result<std::string> safetensors_header(
    std::span<const PlannedTensor> tensors, const std::map<std::string, std::string>& metadata);

}  // namespace locket::checkpoint::internal
