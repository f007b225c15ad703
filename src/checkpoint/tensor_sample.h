// A look into the values of a checkpoint without reading all of it: some bytes of every tensor, and
// which of them are no numbers. Reading is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"

namespace locket::checkpoint {

struct TensorSample {
  std::size_t tensors = 0;  // that were looked into
  std::uint64_t bytes = 0;
  std::size_t broken = 0;             // of them, with a NaN or an infinity
  std::vector<std::string> findings;  // one line for each of the first few
};

// Looks at up to `bytes_per_tensor` bytes, a stretch at the beginning, at the end and between.
// Codes of FP4 and integers are always numbers. Errors of reading name the tensor and the file.
// `on_progress` (may be empty) is told the tensors that are done, and how many there are.
[[nodiscard]] Result<TensorSample> sample_tensors(
    const Checkpoint& checkpoint, std::size_t bytes_per_tensor,
    const std::function<void(std::size_t done, std::size_t total)>& on_progress = {});

}  // namespace locket::checkpoint
