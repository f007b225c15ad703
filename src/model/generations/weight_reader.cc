#include "model/generations/weight_reader.h"

#include <cstring>
#include <fmt/format.h>
#include <span>
#include <utility>

#include "base/check.h"
#include "numerics/bf16.h"

namespace locket::model {
namespace {

using checkpoint::StoredTensor;
using kernels::WeightFormat;
using numerics::Dtype;

WeightFormat format_of(const StoredTensor& plain) {
  return plain.dtype == Dtype::kBf16 ? WeightFormat::kBf16 : WeightFormat::kF32;
}

// As packing leaves it, without anything in it.
kernels::WeightMatrix empty_matrix(WeightFormat format, std::int64_t rows, std::int64_t columns) {
  kernels::WeightMatrix matrix;
  matrix.format = format;
  matrix.rows = static_cast<std::size_t>(rows);
  matrix.columns = static_cast<std::size_t>(columns);
  return matrix;
}

// Adds the tensor's name to an error about its content.
Result<kernels::WeightMatrix> pack_named(const kernels::StoredMatrix& stored,
                                         const StoredTensor& tensor) {
  Result<kernels::WeightMatrix> packed = kernels::pack_weights(stored);
  if (!packed) {
    return fail(packed.error().code,
                fmt::format("tensor {} in {}: {}", tensor.name(), tensor.file->path().string(),
                            packed.error().message));
  }
  return packed;
}

}  // namespace

WeightReader::WeightReader(checkpoint::Checkpoint& checkpoint, LoadProgress progress, Reads reads,
                           Fp8Tile fp8_tile)
    : checkpoint_(&checkpoint), progress_(std::move(progress)), reads_(reads), fp8_tile_(fp8_tile) {
  for (const StoredTensor& tensor : checkpoint.tensors()) total_bytes_ += tensor.byte_count();
}

Result<tensor::AlignedBuffer> WeightReader::read(const StoredTensor& tensor) {
  if (reads_ == Reads::kNothing) return tensor::AlignedBuffer();
  LOCKET_TRY(tensor::AlignedBuffer bytes, tensor.read());
  count(tensor);
  return bytes;
}

void WeightReader::count(const StoredTensor& tensor) {
  done_bytes_ += tensor.byte_count();
  if (progress_) progress_(done_bytes_, total_bytes_);
}

Result<WeightReader::StoredBytes> WeightReader::read(const StoredWeight& stored) {
  StoredBytes bytes;
  if (!is_affine(stored.format)) {
    if (stored.scale) {
      LOCKET_TRY(bytes.scales, read(*stored.scale));
      // Where nothing is read, groups of rows are checked all the same.
      if (bytes.scales.size() == 0) {
        bytes.scales = tensor::AlignedBuffer(stored.scale->byte_count());
      }
    }
    LOCKET_TRY(bytes.values, read(stored.weight));
    return bytes;
  }
  bytes.scales = tensor::AlignedBuffer(
      kernels::stored_scale_bytes(stored.format, stored.rows, stored.columns));
  if (reads_ == Reads::kNothing) return bytes;
  bytes.values =
      tensor::AlignedBuffer(stored.rows * kernels::stored_row_bytes(stored.format, stored.columns));
  const std::span scales(reinterpret_cast<float*>(bytes.scales.data()),
                         bytes.scales.size() / sizeof(float));
  LOCKET_TRY_STATUS(
      stored.weight.file->read_codes(*stored.weight.entry, bytes.values.bytes(), scales));
  count(stored.weight);
  return bytes;
}

Result<kernels::WeightMatrix> WeightReader::matrix(const std::string& name, std::int64_t rows,
                                                   std::int64_t columns) {
  LOCKET_TRY(std::vector<kernels::WeightMatrix> whole, grouped_matrix(name, rows, columns, 1));
  return std::move(whole.front());
}

Result<std::vector<kernels::WeightMatrix>> WeightReader::grouped_matrix(const std::string& name,
                                                                        std::int64_t rows,
                                                                        std::int64_t columns,
                                                                        std::int64_t groups) {
  LOCKET_CHECK(groups > 0 && rows % groups == 0);
  LOCKET_TRY(const StoredWeight stored, find_weight(*checkpoint_, name, rows, columns, fp8_tile_));
  LOCKET_TRY(const StoredBytes bytes, read(stored));
  const std::int64_t group_rows = rows / groups;
  const auto value_bytes = bytes.values.size() / static_cast<std::size_t>(groups);
  std::vector<kernels::WeightMatrix> matrices;
  for (std::int64_t group = 0; group < groups; ++group) {
    const auto first = static_cast<std::size_t>(group);
    LOCKET_TRY(
        const std::vector<std::byte> group_scales,
        stored.scales_of_rows(bytes.scales.bytes(), first * static_cast<std::size_t>(group_rows),
                              static_cast<std::size_t>(group_rows)));
    if (reads_ == Reads::kNothing) {
      matrices.push_back(empty_matrix(stored.format, group_rows, columns));
      continue;
    }
    LOCKET_TRY(kernels::WeightMatrix packed,
               pack_named({.format = stored.format,
                           .rows = static_cast<std::size_t>(group_rows),
                           .columns = static_cast<std::size_t>(columns),
                           .values = bytes.values.bytes().subspan(first * value_bytes, value_bytes),
                           .scales = group_scales},
                          stored.weight));
    matrices.push_back(std::move(packed));
  }
  return matrices;
}

Result<kernels::WeightMatrix> WeightReader::plain_matrix(const std::string& name, std::int64_t rows,
                                                         std::int64_t columns) {
  LOCKET_TRY(const StoredTensor weight,
             checkpoint_->require(name, {Dtype::kBf16, Dtype::kF32}, {rows, columns}));
  if (reads_ == Reads::kNothing) return empty_matrix(format_of(weight), rows, columns);
  LOCKET_TRY(const tensor::AlignedBuffer values, read(weight));
  return pack_named({.format = format_of(weight),
                     .rows = static_cast<std::size_t>(rows),
                     .columns = static_cast<std::size_t>(columns),
                     .values = values.bytes(),
                     .scales = {}},
                    weight);
}

Result<std::vector<float>> WeightReader::values(const std::string& name,
                                                const tensor::Shape& shape) {
  LOCKET_TRY(const StoredTensor tensor,
             checkpoint_->require(name, {Dtype::kBf16, Dtype::kF32}, shape));
  const std::size_t element = tensor.dtype == Dtype::kF32 ? 4 : 2;
  if (reads_ == Reads::kNothing) return std::vector<float>(tensor.byte_count() / element);
  LOCKET_TRY(const tensor::AlignedBuffer bytes, read(tensor));
  std::vector<float> result(bytes.size() / element);
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (element == 4) {
      std::memcpy(&result[i], bytes.data() + i * 4, 4);
      continue;
    }
    numerics::Bf16 value;
    std::memcpy(&value.bits, bytes.data() + i * 2, 2);
    result[i] = numerics::to_float(value);
  }
  return result;
}

Result<std::vector<std::int32_t>> WeightReader::numbers(const std::string& name,
                                                        const tensor::Shape& shape,
                                                        std::int64_t limit) {
  LOCKET_TRY(const StoredTensor tensor, checkpoint_->require(name, Dtype::kI64, shape));
  std::vector<std::int32_t> numbers(tensor.byte_count() / sizeof(std::int64_t));
  if (reads_ == Reads::kNothing) return numbers;
  LOCKET_TRY(const tensor::AlignedBuffer bytes, read(tensor));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    std::int64_t number = 0;
    std::memcpy(&number, bytes.data() + i * sizeof(number), sizeof(number));
    if (number < 0 || number >= limit) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("tensor {} in {}: entry {} is {}; 0 to {} are known", name,
                              tensor.file->path().string(), i, number, limit - 1));
    }
    numbers[i] = static_cast<std::int32_t>(number);
  }
  return numbers;
}

Result<tensor::AlignedBuffer> WeightReader::bf16_bytes(const std::string& name,
                                                       const tensor::Shape& shape) {
  LOCKET_TRY(const StoredTensor tensor, checkpoint_->require(name, Dtype::kBf16, shape));
  return read(tensor);
}

}  // namespace locket::model
