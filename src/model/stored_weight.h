// A weight of a checkpoint that has been found and checked but not read: NAME.weight with
// NAME.scale beside it (FP8 or FP4), or NAME.weight alone (BF16 or F32). The checkpoint must
// outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "kernels/weight_matrix.h"

namespace locket::model {

struct StoredWeight {
  checkpoint::StoredTensor weight;                // [rows, columns]
  std::optional<checkpoint::StoredTensor> scale;  // as kernels::StoredMatrix has it
  kernels::WeightFormat format = kernels::WeightFormat::kF32;
  std::size_t rows = 0;
  std::size_t columns = 0;

  // On disk.
  std::uint64_t byte_count() const {
    return weight.byte_count() + (scale ? scale->byte_count() : 0);
  }
  // Memory that it takes as a kernels::WeightMatrix.
  std::size_t packed_bytes() const;
};

// Finds, checks and claims the tensors of a weight [rows, columns]. Errors as
// Checkpoint::require().
[[nodiscard]] Result<StoredWeight> find_weight(checkpoint::Checkpoint& checkpoint,
                                               const std::string& name, std::int64_t rows,
                                               std::int64_t columns);

}  // namespace locket::model
