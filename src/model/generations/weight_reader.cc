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

std::int64_t groups_of_32(std::int64_t count) { return (count + 31) / 32; }

WeightFormat format_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16:
      return WeightFormat::kBf16;
    case Dtype::kF32:
      return WeightFormat::kF32;
    case Dtype::kFp8E4m3:
      return WeightFormat::kFp8;
    case Dtype::kFp4E2m1:
      return WeightFormat::kFp4;
    case Dtype::kF16:
    case Dtype::kFp8E5m2:
    case Dtype::kE8m0:
    case Dtype::kI8:
    case Dtype::kU8:
    case Dtype::kI32:
    case Dtype::kI64:
    case Dtype::kBool:
    case Dtype::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

// As packing leaves it, without anything in it.
kernels::WeightMatrix empty_matrix(const StoredTensor& tensor, std::int64_t rows,
                                   std::int64_t columns) {
  kernels::WeightMatrix matrix;
  matrix.format = format_of(tensor.dtype);
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

WeightReader::WeightReader(checkpoint::Checkpoint& checkpoint, LoadProgress progress, Reads reads)
    : checkpoint_(&checkpoint), progress_(std::move(progress)), reads_(reads) {
  for (const StoredTensor& tensor : checkpoint.tensors()) total_bytes_ += tensor.byte_count();
}

Result<tensor::AlignedBuffer> WeightReader::read(const StoredTensor& tensor) {
  if (reads_ == Reads::kNothing) return tensor::AlignedBuffer();
  LOCKET_TRY(tensor::AlignedBuffer bytes, tensor.read());
  done_bytes_ += tensor.byte_count();
  if (progress_) progress_(done_bytes_, total_bytes_);
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
  const std::string weight_name = name + ".weight";
  const std::string scale_name = name + ".scale";
  tensor::AlignedBuffer scales;
  StoredTensor weight;
  if (!checkpoint_->find(scale_name)) {
    LOCKET_TRY(weight,
               checkpoint_->require(weight_name, {Dtype::kBf16, Dtype::kF32}, {rows, columns}));
  } else {
    LOCKET_TRY(weight, checkpoint_->require(weight_name, {Dtype::kFp8E4m3, Dtype::kFp4E2m1},
                                            {rows, columns}));
    const std::int64_t scale_rows = weight.dtype == Dtype::kFp8E4m3 ? groups_of_32(rows) : rows;
    LOCKET_TRY(const StoredTensor scale,
               checkpoint_->require(scale_name, Dtype::kE8m0, {scale_rows, groups_of_32(columns)}));
    LOCKET_TRY(scales, read(scale));
  }
  LOCKET_TRY(const tensor::AlignedBuffer values, read(weight));
  const std::int64_t group_rows = rows / groups;
  if (weight.dtype == Dtype::kFp8E4m3 && groups > 1 && group_rows % 32 != 0) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("tensor {} in {}: its {} groups of {} rows cut 32 x 32 scale tiles; a "
                            "multiple of 32 rows is needed",
                            weight_name, weight.file->path().string(), groups, group_rows));
  }
  std::vector<kernels::WeightMatrix> matrices;
  for (std::int64_t group = 0; group < groups; ++group) {
    const auto part = [&](const tensor::AlignedBuffer& bytes) {
      const std::size_t size = bytes.size() / static_cast<std::size_t>(groups);
      return groups == 1 ? bytes.bytes()
                         : bytes.bytes().subspan(static_cast<std::size_t>(group) * size, size);
    };
    if (reads_ == Reads::kNothing) {
      matrices.push_back(empty_matrix(weight, group_rows, columns));
      continue;
    }
    LOCKET_TRY(kernels::WeightMatrix packed,
               pack_named({.format = format_of(weight.dtype),
                           .rows = static_cast<std::size_t>(group_rows),
                           .columns = static_cast<std::size_t>(columns),
                           .values = part(values),
                           .scales = part(scales)},
                          weight));
    matrices.push_back(std::move(packed));
  }
  return matrices;
}

Result<kernels::WeightMatrix> WeightReader::plain_matrix(const std::string& name, std::int64_t rows,
                                                         std::int64_t columns) {
  LOCKET_TRY(const StoredTensor weight,
             checkpoint_->require(name, {Dtype::kBf16, Dtype::kF32}, {rows, columns}));
  if (reads_ == Reads::kNothing) return empty_matrix(weight, rows, columns);
  LOCKET_TRY(const tensor::AlignedBuffer values, read(weight));
  return pack_named({.format = format_of(weight.dtype),
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

Result<tensor::AlignedBuffer> WeightReader::bf16_bytes(const std::string& name,
                                                       const tensor::Shape& shape) {
  LOCKET_TRY(const StoredTensor tensor, checkpoint_->require(name, Dtype::kBf16, shape));
  return read(tensor);
}

}  // namespace locket::model
