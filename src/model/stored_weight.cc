#include "model/stored_weight.h"

#include <algorithm>
#include <fmt/format.h>

#include "base/check.h"

namespace locket::model {
namespace {

using kernels::WeightFormat;
using numerics::Dtype;

constexpr std::size_t kScaleSide = 32;  // of a tile that kernels take

std::int64_t tile_side(Fp8Tile tile) { return tile == Fp8Tile::k32 ? 32 : 128; }

std::int64_t groups_of(std::int64_t side, std::int64_t count) { return (count + side - 1) / side; }

}  // namespace

WeightFormat plain_format(const checkpoint::StoredTensor& weight) {
  switch (weight.file->code_bits(*weight.entry)) {
    case 4:
      return WeightFormat::kAffine4;
    case 8:
      return WeightFormat::kAffine8;
    default:
      return weight.dtype == Dtype::kBf16 ? WeightFormat::kBf16 : WeightFormat::kF32;
  }
}

std::size_t StoredWeight::packed_bytes() const {
  return kernels::packed_bytes(format, rows, columns);
}

// Kernels take float32 scales as they are stored.
Result<std::vector<std::byte>> StoredWeight::float_scales_of_rows(std::span<const std::byte> stored,
                                                                  std::size_t first_row,
                                                                  std::size_t row_count) const {
  constexpr std::size_t kSide = 128;
  const std::size_t end = first_row + row_count;
  if (first_row % kSide != 0 || (end % kSide != 0 && end != rows)) {
    return fail(ErrorCode::kUnsupported,
                fmt::format("tensor {} in {}: {} rows of it cut {} x {} scale tiles", weight.name(),
                            weight.file->path().string(), row_count, kSide, kSide));
  }
  const std::size_t row_bytes = (columns + kSide - 1) / kSide * sizeof(float);
  const std::size_t count = (row_count + kSide - 1) / kSide;
  const auto part = stored.subspan(first_row / kSide * row_bytes, count * row_bytes);
  return std::vector<std::byte>(part.begin(), part.end());
}

Result<std::vector<std::byte>> StoredWeight::scales_of_rows(std::span<const std::byte> stored,
                                                            std::size_t first_row,
                                                            std::size_t row_count) const {
  const std::size_t all = (columns + kScaleSide - 1) / kScaleSide;
  std::vector<std::byte> scales;
  if (format == WeightFormat::kFp4 || is_affine(format)) {
    const std::size_t row_bytes = kernels::stored_scale_bytes(format, 1, columns);
    const auto part = stored.subspan(first_row * row_bytes, row_count * row_bytes);
    return std::vector<std::byte>(part.begin(), part.end());
  }
  if (format == WeightFormat::kFp8F32) return float_scales_of_rows(stored, first_row, row_count);
  if (format != WeightFormat::kFp8) return scales;
  const auto side = static_cast<std::size_t>(tile_side(fp8_tile));
  const std::size_t stored_columns = (columns + side - 1) / side;
  for (std::size_t row = 0; row < row_count; row += kScaleSide) {
    const std::size_t first = first_row + row;
    const std::size_t last = first_row + std::min(row + kScaleSide, row_count) - 1;
    if (first / side != last / side) {
      return fail(
          ErrorCode::kUnsupported,
          fmt::format("tensor {} in {}: its {} groups of {} rows cut {} x {} scale tiles; a "
                      "multiple of {} rows is needed",
                      weight.name(), weight.file->path().string(), rows / row_count, row_count,
                      side, side, side));
    }
    for (std::size_t group = 0; group < all; ++group) {
      scales.push_back(stored[first / side * stored_columns + group * kScaleSide / side]);
    }
  }
  return scales;
}

Result<StoredWeight> find_weight(checkpoint::Checkpoint& checkpoint, const std::string& name,
                                 std::int64_t rows, std::int64_t columns, Fp8Tile fp8_tile) {
  StoredWeight found;
  found.rows = static_cast<std::size_t>(rows);
  found.columns = static_cast<std::size_t>(columns);
  found.fp8_tile = fp8_tile;
  const std::string scale_name = name + ".scale";
  const std::string float_scale_name = name + ".weight_scale_inv";
  if (checkpoint.find(float_scale_name)) {
    LOCKET_TRY(found.weight,
               checkpoint.require(name + ".weight", Dtype::kFp8E4m3, {rows, columns}));
    LOCKET_TRY(found.scale, checkpoint.require(float_scale_name, Dtype::kF32,
                                               {groups_of(128, rows), groups_of(128, columns)}));
    found.format = WeightFormat::kFp8F32;
    return found;
  }
  if (checkpoint.find(scale_name)) {
    LOCKET_TRY(
        found.weight,
        checkpoint.require(name + ".weight", {Dtype::kFp8E4m3, Dtype::kFp4E2m1}, {rows, columns}));
    const bool is_fp8 = found.weight.dtype == Dtype::kFp8E4m3;
    const std::int64_t side = is_fp8 ? tile_side(fp8_tile) : tile_side(Fp8Tile::k32);
    LOCKET_TRY(found.scale, checkpoint.require(
                                scale_name, Dtype::kE8m0,
                                {is_fp8 ? groups_of(side, rows) : rows, groups_of(side, columns)}));
    found.format = is_fp8 ? WeightFormat::kFp8 : WeightFormat::kFp4;
  } else {
    LOCKET_TRY(found.weight,
               checkpoint.require(name + ".weight", {Dtype::kBf16, Dtype::kF32}, {rows, columns}));
    found.format = plain_format(found.weight);
  }
  return found;
}

}  // namespace locket::model
