// Reads named tensors of a checkpoint into the forms that the mechanisms take. Every tensor is
// checked (dtype, shape, NaN codes) and claimed. A weight with a `.scale` beside it is FP8 (scales
// per 32 x 32 or 128 x 128) or packed FP4 (scales per row and 32); with a `.weight_scale_inv` it is
// FP8 with float32 scales per 128 x 128; without either it is plain BF16 or F32, or, out of a GGUF
// file, codes with scale and offset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "kernels/weight_matrix.h"
#include "model/stored_weight.h"
#include "tensor/aligned_buffer.h"

namespace locket::model {

// Called after every tensor with the bytes read so far and the bytes of the whole checkpoint.
using LoadProgress = std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)>;

class WeightReader {
 public:
  // kNothing: everything is checked and claimed as for reading, but comes back empty or zero.
  enum class Reads { kEverything, kNothing };
  // REQUIRES: `checkpoint` outlives the reader.
  WeightReader(checkpoint::Checkpoint& checkpoint, LoadProgress progress,
               Reads reads = Reads::kEverything, Fp8Tile fp8_tile = Fp8Tile::k32);

  Reads reads() const { return reads_; }
  Fp8Tile fp8_tile() const { return fp8_tile_; }

  // NAME.weight [rows, columns] with NAME.scale, or plain.
  [[nodiscard]] Result<kernels::WeightMatrix> matrix(const std::string& name, std::int64_t rows,
                                                     std::int64_t columns);
  // The same cut into `groups` matrices of rows / groups consecutive rows each.
  [[nodiscard]] Result<std::vector<kernels::WeightMatrix>> grouped_matrix(const std::string& name,
                                                                          std::int64_t rows,
                                                                          std::int64_t columns,
                                                                          std::int64_t groups);
  // A plain matrix under its whole name, BF16 or F32.
  [[nodiscard]] Result<kernels::WeightMatrix> plain_matrix(const std::string& name,
                                                           std::int64_t rows, std::int64_t columns);
  // BF16 or F32 values as float32.
  [[nodiscard]] Result<std::vector<float>> values(const std::string& name,
                                                  const tensor::Shape& shape);
  // I64 numbers of at least 0 and below `limit`; kBadCheckpoint where there are others.
  [[nodiscard]] Result<std::vector<std::int32_t>> numbers(const std::string& name,
                                                          const tensor::Shape& shape,
                                                          std::int64_t limit);
  // Raw BF16 bytes.
  [[nodiscard]] Result<tensor::AlignedBuffer> bf16_bytes(const std::string& name,
                                                         const tensor::Shape& shape);

  // Everything wanted has been read: what is left of the progress was skipped on purpose.
  void finish() const {
    if (progress_) progress_(total_bytes_, total_bytes_);
  }

  std::uint64_t done_bytes() const { return done_bytes_; }
  checkpoint::Checkpoint& checkpoint() { return *checkpoint_; }

 private:
  // Stored values and all scales of a weight, as kernels::StoredMatrix has them.
  struct StoredBytes {
    tensor::AlignedBuffer values;
    tensor::AlignedBuffer scales;
  };
  [[nodiscard]] Result<StoredBytes> read(const StoredWeight& stored);
  [[nodiscard]] Result<tensor::AlignedBuffer> read(const checkpoint::StoredTensor& tensor);
  void count(const checkpoint::StoredTensor& tensor);

  checkpoint::Checkpoint* checkpoint_;
  LoadProgress progress_;
  Reads reads_;
  Fp8Tile fp8_tile_;
  std::uint64_t done_bytes_ = 0;
  std::uint64_t total_bytes_ = 0;
};

}  // namespace locket::model
