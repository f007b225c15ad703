// A weight of a checkpoint that has been found and checked but not read: NAME.weight with
// NAME.scale beside it (FP8 or FP4), or with float32 NAME.weight_scale_inv (FP8; in spite of its
// name it multiplies), or NAME.weight alone (BF16 or F32, or codes with scale and offset, as GGUF
// files have them). The checkpoint must outlive it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "kernels/weight_matrix.h"

namespace locket::model {

// Rows and columns that a scale of a stored FP8 weight reaches over.
enum class Fp8Tile { k32, k128 };

struct StoredWeight {
  checkpoint::StoredTensor weight;                // [rows, columns]
  std::optional<checkpoint::StoredTensor> scale;  // as kernels::StoredMatrix has it
  kernels::WeightFormat format = kernels::WeightFormat::kF32;
  std::size_t rows = 0;
  std::size_t columns = 0;
  Fp8Tile fp8_tile = Fp8Tile::k32;  // kFp8

  // On disk.
  std::uint64_t byte_count() const {
    return weight.byte_count() + (scale ? scale->byte_count() : 0);
  }
  // Memory that it takes as a kernels::WeightMatrix.
  std::size_t packed_bytes() const;

  // The scales of some rows as kernels::StoredMatrix has them, from the scales of the file.
  // kUnsupported, with the tensor's name, where the rows cut a tile of them.
  [[nodiscard]] Result<std::vector<std::byte>> scales_of_rows(std::span<const std::byte> stored,
                                                              std::size_t first_row,
                                                              std::size_t row_count) const;

 private:
  [[nodiscard]] Result<std::vector<std::byte>> float_scales_of_rows(
      std::span<const std::byte> stored, std::size_t first_row, std::size_t row_count) const;
};

// Of a weight [rows, columns] without a tensor of scales beside it.
kernels::WeightFormat plain_format(const checkpoint::StoredTensor& weight);

// Finds, checks and claims the tensors of a weight [rows, columns]. Errors as
// Checkpoint::require().
[[nodiscard]] Result<StoredWeight> find_weight(checkpoint::Checkpoint& checkpoint,
                                               const std::string& name, std::int64_t rows,
                                               std::int64_t columns,
                                               Fp8Tile fp8_tile = Fp8Tile::k32);

}  // namespace locket::model
