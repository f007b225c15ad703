#include "model/stored_weight.h"

#include "base/check.h"

namespace locket::model {
namespace {

using kernels::WeightFormat;
using numerics::Dtype;

std::int64_t groups_of_32(std::int64_t count) { return (count + 31) / 32; }

WeightFormat format_of(Dtype dtype) {
  if (dtype == Dtype::kFp4E2m1) return WeightFormat::kFp4;
  if (dtype == Dtype::kFp8E4m3) return WeightFormat::kFp8;
  if (dtype == Dtype::kBf16) return WeightFormat::kBf16;
  LOCKET_CHECK(dtype == Dtype::kF32);
  return WeightFormat::kF32;
}

}  // namespace

std::size_t StoredWeight::packed_bytes() const {
  return kernels::packed_bytes(format, rows, columns);
}

Result<StoredWeight> find_weight(checkpoint::Checkpoint& checkpoint, const std::string& name,
                                 std::int64_t rows, std::int64_t columns) {
  StoredWeight found;
  found.rows = static_cast<std::size_t>(rows);
  found.columns = static_cast<std::size_t>(columns);
  const std::string scale_name = name + ".scale";
  if (checkpoint.find(scale_name)) {
    LOCKET_TRY(
        found.weight,
        checkpoint.require(name + ".weight", {Dtype::kFp8E4m3, Dtype::kFp4E2m1}, {rows, columns}));
    const std::int64_t scale_rows =
        found.weight.dtype == Dtype::kFp8E4m3 ? groups_of_32(rows) : rows;
    LOCKET_TRY(found.scale,
               checkpoint.require(scale_name, Dtype::kE8m0, {scale_rows, groups_of_32(columns)}));
  } else {
    LOCKET_TRY(found.weight,
               checkpoint.require(name + ".weight", {Dtype::kBf16, Dtype::kF32}, {rows, columns}));
  }
  found.format = format_of(found.weight.dtype);
  return found;
}

}  // namespace locket::model
