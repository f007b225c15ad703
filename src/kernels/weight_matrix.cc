#include "kernels/weight_matrix.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string>

#include "base/check.h"
#include "kernels/cpu/fp4_pack.h"
#include "kernels/fp8_tile.h"
#include "kernels/sum_order.h"
#include "numerics/bf16.h"
#include "numerics/e8m0.h"
#include "numerics/fp4_e2m1.h"
#include "numerics/fp8_e4m3.h"

namespace locket::kernels {
namespace {

constexpr std::size_t kTileRows = 16;
constexpr std::size_t kTileColumns = 32;
constexpr std::size_t kF32ScaleTileRows = 128 / kTileRows;        // tiles that one float32 scale
constexpr std::size_t kF32ScaleTileColumns = 128 / kTileColumns;  // of kFp8F32 is for

constexpr bool holds_fp8(WeightFormat format) {
  return format == WeightFormat::kFp8 || format == WeightFormat::kFp8F32;
}

// Byte, half-word (kBf16), nibble (4 bits) or float (kF32) index of element (row, column) inside
// its tile.
constexpr std::size_t element_index(WeightFormat format, std::size_t row, std::size_t column) {
  const std::size_t eight = column / 8;
  const std::size_t in_eight = column % 8;
  const std::size_t pair = in_eight % 4;
  const std::size_t high = in_eight / 4;
  switch (format) {
    case WeightFormat::kBf16:
      return ((eight * 4 + pair) * kTileRows + row) * 2 + high;
    case WeightFormat::kFp8:
    case WeightFormat::kFp8F32:
      return fp8_tile_place(row, column);
    case WeightFormat::kFp4:
    case WeightFormat::kAffine4:
      return (eight * kTileRows + row) * 8 + in_eight;
    case WeightFormat::kF32:
      return column * kTileRows + row;
    case WeightFormat::kAffine8:
      return (column / 4 * kTileRows + row) * 4 + column % 4;
    case WeightFormat::kCount:
      break;
  }
  return 0;
}

// The bytes of tiles for all codes; those of NaN are never looked up.
constexpr std::array<std::byte, 256> kFp8TileBytes = [] {
  std::array<std::byte, 256> bytes = {};
  for (unsigned code = 0; code < 256; ++code) {
    bytes[code] = std::byte{to_fp8_tile(static_cast<std::uint8_t>(code))};
  }
  return bytes;
}();

// One row of values in the columns of one tile. Four and eight bits without a sign go by double
// words, which keep their order.
template <WeightFormat format>
void copy_columns(const std::byte* source, std::size_t lane, std::size_t columns, std::byte* tile) {
  constexpr std::size_t kElementBytes = format == WeightFormat::kBf16 ? 2 : 4;
  if constexpr (format == WeightFormat::kFp4) {
    for (std::size_t eight = 0; eight < columns / 8; ++eight) {
      std::memcpy(tile + (eight * kTileRows + lane) * 4, source + eight * 4, 4);
    }
  } else if constexpr (format == WeightFormat::kAffine8) {
    for (std::size_t four = 0; four < columns / 4; ++four) {
      std::memcpy(tile + (four * kTileRows + lane) * 4, source + four * 4, 4);
    }
  } else if constexpr (format == WeightFormat::kFp8) {
    for (std::size_t column = 0; column < columns; ++column) {
      tile[fp8_tile_place(lane, column)] =
          kFp8TileBytes[std::to_integer<std::size_t>(source[column])];
    }
  } else {
    for (std::size_t column = 0; column < columns; ++column) {
      std::memcpy(tile + element_index(format, lane, column) * kElementBytes,
                  source + column * kElementBytes, kElementBytes);
    }
  }
}

// Up to 16 rows into the tiles of one row group: tile by tile, which stays in the nearest cache.
template <WeightFormat format>
void copy_row_group(std::span<const std::byte> values, std::size_t columns, std::byte* tiles) {
  const std::size_t row_bytes = stored_row_bytes(format, columns);
  const std::size_t rows = values.size() / row_bytes;
  const std::size_t whole = columns / kTileColumns;
  const std::size_t tile_row_bytes = stored_row_bytes(format, kTileColumns);
  for (std::size_t group = 0; group < whole; ++group, tiles += tile_bytes(format)) {
    const std::byte* source = values.data() + group * tile_row_bytes;
    for (std::size_t row = 0; row < rows; ++row, source += row_bytes) {
      copy_columns<format>(source, row, kTileColumns, tiles);
    }
  }
  const std::size_t rest = columns % kTileColumns;
  for (std::size_t row = 0; row < rows && rest > 0; ++row) {
    copy_columns<format>(values.data() + row * row_bytes + whole * tile_row_bytes, row, rest,
                         tiles);
  }
}

void copy_row_group(WeightFormat format, std::span<const std::byte> values, std::size_t columns,
                    std::byte* tiles) {
  switch (format) {
    case WeightFormat::kBf16:
      return copy_row_group<WeightFormat::kBf16>(values, columns, tiles);
    case WeightFormat::kFp8:
    case WeightFormat::kFp8F32:
      return copy_row_group<WeightFormat::kFp8>(values, columns, tiles);
    case WeightFormat::kFp4:
    case WeightFormat::kAffine4:
      if (values.size() == kTileRows * stored_row_bytes(format, columns)) {
        return cpu::pack_fp4_group(values, tiles);
      }
      return copy_row_group<WeightFormat::kFp4>(values, columns, tiles);
    case WeightFormat::kF32:
      return copy_row_group<WeightFormat::kF32>(values, columns, tiles);
    case WeightFormat::kAffine8:
      return copy_row_group<WeightFormat::kAffine8>(values, columns, tiles);
    case WeightFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

void copy_f32_scales(std::span<const std::byte> scales, WeightMatrix& matrix) {
  const std::size_t column_groups = matrix.column_groups();
  const std::size_t across = (column_groups + kF32ScaleTileColumns - 1) / kF32ScaleTileColumns;
  std::byte* target = matrix.scales.data();
  for (std::size_t row = 0; row < matrix.row_groups(); ++row) {
    const std::byte* source = scales.data() + row / kF32ScaleTileRows * across * sizeof(float);
    for (std::size_t column = 0; column < column_groups; ++column, target += sizeof(float)) {
      std::memcpy(target, source + column / kF32ScaleTileColumns * sizeof(float), sizeof(float));
    }
  }
}

// Scale and offset of a row and 32 columns into the lane of the row; padded rows stay zero.
void copy_affine_scales(std::span<const std::byte> scales, WeightMatrix& matrix) {
  const std::size_t column_groups = matrix.column_groups();
  const std::size_t tile_scales = tile_scale_bytes(matrix.format);
  const std::byte* source = scales.data();
  for (std::size_t row = 0; row < matrix.rows; ++row) {
    std::byte* lane = matrix.scales.data() + row / kTileRows * column_groups * tile_scales +
                      row % kTileRows * sizeof(float);
    for (std::size_t group = 0; group < column_groups; ++group, lane += tile_scales) {
      std::memcpy(lane, source, sizeof(float));
      std::memcpy(lane + tile_scales / 2, source + sizeof(float), sizeof(float));
      source += 2 * sizeof(float);
    }
  }
}

void copy_scales(std::span<const std::byte> scales, WeightMatrix& matrix) {
  const std::size_t column_groups = matrix.column_groups();
  std::byte* target = matrix.scales.data();
  if (matrix.format == WeightFormat::kFp8) {
    for (std::size_t group = 0; group < matrix.row_groups(); ++group) {
      std::memcpy(target + group * column_groups, scales.data() + group / 2 * column_groups,
                  column_groups);
    }
  } else if (matrix.format == WeightFormat::kFp4) {
    constexpr int kOne = 127;  // for the padded rows; the others follow
    if (matrix.rows % kTileRows != 0) {
      const std::size_t last = matrix.rows / kTileRows * column_groups * kTileRows;
      std::memset(target + last, kOne, column_groups * kTileRows);
    }
    for (std::size_t row = 0; row < matrix.rows; ++row) {
      std::byte* lane = target + row / kTileRows * column_groups * kTileRows + row % kTileRows;
      const std::byte* source = scales.data() + row * column_groups;
      for (std::size_t group = 0; group < column_groups; ++group) {
        lane[group * kTileRows] = source[group];
      }
    }
  } else if (matrix.format == WeightFormat::kFp8F32) {
    copy_f32_scales(scales, matrix);
  } else if (is_affine(matrix.format)) {
    copy_affine_scales(scales, matrix);
  }
}

// Where code 255 stands; -1: nowhere.
std::ptrdiff_t find_nan_scale(std::span<const std::byte> scales) {
  const auto* const found = scales.empty()
                                ? nullptr
                                : static_cast<const std::byte*>(std::memchr(
                                      scales.data(), numerics::kE8m0NanCode, scales.size()));
  return found == nullptr ? -1 : found - scales.data();
}

float fp8_value(std::byte tile_byte) {
  return numerics::to_float(
      numerics::Fp8E4m3{from_fp8_tile(std::to_integer<std::uint8_t>(tile_byte))});
}

float float_at(const std::byte* bytes) {
  float value = 0.0f;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

// `scales`: of the tile, at the lane of the row.
float affine_value(WeightFormat format, unsigned code, const std::byte* scales) {
  const float scale = flush_denormal(float_at(scales));
  const float offset = flush_denormal(float_at(scales + tile_scale_bytes(format) / 2));
  return flush_denormal(flush_denormal(static_cast<float>(code) * scale) + offset);
}

Status check_f32_scales(std::span<const std::byte> scales) {
  for (std::size_t i = 0; i < scales.size() / sizeof(float); ++i) {
    const float scale = float_at(scales.data() + i * sizeof(float));
    if (std::isfinite(scale)) continue;
    return fail(ErrorCode::kBadCheckpoint, "scale " + std::to_string(i) + " is " +
                                               (std::isnan(scale) ? "NaN" : "infinite") +
                                               " (float32)");
  }
  return {};
}

}  // namespace

std::size_t stored_row_bytes(WeightFormat format, std::size_t columns) {
  switch (format) {
    case WeightFormat::kBf16:
      return columns * 2;
    case WeightFormat::kFp8:
    case WeightFormat::kFp8F32:
    case WeightFormat::kAffine8:
      return columns;
    case WeightFormat::kFp4:
    case WeightFormat::kAffine4:
      return columns / 2;
    case WeightFormat::kF32:
      return columns * 4;
    case WeightFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::size_t stored_scale_bytes(WeightFormat format, std::size_t rows, std::size_t columns) {
  const std::size_t column_groups = (columns + 31) / 32;
  if (format == WeightFormat::kFp8) return (rows + 31) / 32 * column_groups;
  if (format == WeightFormat::kFp4) return rows * column_groups;
  if (format == WeightFormat::kFp8F32) {
    return (rows + 127) / 128 * ((columns + 127) / 128) * sizeof(float);
  }
  if (is_affine(format)) return rows * column_groups * 2 * sizeof(float);
  return 0;
}

std::size_t packed_bytes(WeightFormat format, std::size_t rows, std::size_t columns) {
  const std::size_t tile_count =
      ((rows + kTileRows - 1) / kTileRows) * ((columns + kTileColumns - 1) / kTileColumns);
  return tensor::AlignedBuffer::taken_by_two(tile_count * tile_bytes(format),
                                             tile_count * tile_scale_bytes(format));
}

WeightMatrix unpacked_matrix(WeightFormat format, std::size_t rows, std::size_t columns) {
  LOCKET_CHECK(!needs_whole_groups(format) || columns % kTileColumns == 0);
  WeightMatrix matrix{
      .format = format, .rows = rows, .columns = columns, .tiles = {}, .scales = {}};
  const std::size_t tile_count = matrix.row_groups() * matrix.column_groups();
  auto buffers = tensor::AlignedBuffer::two(tile_count * tile_bytes(format),
                                            tile_count * tile_scale_bytes(format));
  matrix.tiles = std::move(buffers[0]);
  matrix.scales = std::move(buffers[1]);
  return matrix;
}

Status pack_values(std::span<const std::byte> values, std::size_t first_row, WeightMatrix& matrix) {
  const std::size_t row_bytes = stored_row_bytes(matrix.format, matrix.columns);
  const std::size_t rows = values.size() / row_bytes;
  LOCKET_CHECK(first_row % kTileRows == 0 && values.size() == rows * row_bytes);
  LOCKET_CHECK(first_row + rows <= matrix.rows);
  LOCKET_CHECK(rows % kTileRows == 0 || first_row + rows == matrix.rows);
  if (holds_fp8(matrix.format)) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if ((std::to_integer<unsigned>(values[i]) & 0x7Fu) != 0x7Fu) continue;
      return fail(ErrorCode::kBadCheckpoint,
                  "value " + std::to_string(first_row * row_bytes + i) + " is NaN (E4M3)");
    }
  }
  const std::size_t tile_row = matrix.column_groups() * tile_bytes(matrix.format);
  for (std::size_t row = 0; row < rows; row += kTileRows) {
    const std::size_t count = std::min(kTileRows, rows - row);
    copy_row_group(matrix.format, values.subspan(row * row_bytes, count * row_bytes),
                   matrix.columns, matrix.tiles.data() + (first_row + row) / kTileRows * tile_row);
  }
  return {};
}

Status pack_scales(std::span<const std::byte> scales, WeightMatrix& matrix) {
  LOCKET_CHECK(scales.size() == stored_scale_bytes(matrix.format, matrix.rows, matrix.columns));
  const bool are_floats = matrix.format == WeightFormat::kFp8F32 || is_affine(matrix.format);
  if (are_floats) LOCKET_TRY_STATUS(check_f32_scales(scales));
  const std::ptrdiff_t nan = are_floats ? -1 : find_nan_scale(scales);
  if (nan >= 0) {
    return fail(ErrorCode::kBadCheckpoint,
                "scale " + std::to_string(nan) + " is NaN (E8M0 code 255)");
  }
  copy_scales(scales, matrix);
  return {};
}

Result<WeightMatrix> pack_weights(const StoredMatrix& stored) {
  LOCKET_CHECK(stored.values.size() ==
               stored.rows * stored_row_bytes(stored.format, stored.columns));
  WeightMatrix matrix = unpacked_matrix(stored.format, stored.rows, stored.columns);
  LOCKET_TRY_STATUS(pack_scales(stored.scales, matrix));
  LOCKET_TRY_STATUS(pack_values(stored.values, 0, matrix));
  return matrix;
}

float weight_at(const WeightMatrix& matrix, std::size_t row, std::size_t column) {
  const std::size_t tile_number = row / kTileRows * matrix.column_groups() + column / kTileColumns;
  const std::byte* tile = matrix.tiles.data() + tile_number * tile_bytes(matrix.format);
  const std::byte* scales = matrix.scales.data() + tile_number * tile_scale_bytes(matrix.format);
  const std::size_t index = element_index(matrix.format, row % kTileRows, column % kTileColumns);
  const auto scale = [&](std::size_t at) {
    return numerics::to_float(numerics::E8m0{std::to_integer<std::uint8_t>(scales[at])});
  };
  switch (matrix.format) {
    case WeightFormat::kBf16: {
      numerics::Bf16 value;
      std::memcpy(&value.bits, tile + index * 2, 2);
      return numerics::to_float(value);
    }
    case WeightFormat::kFp8:
      return fp8_value(tile[index]) * scale(0);
    case WeightFormat::kFp8F32:
      return fp8_value(tile[index]) * float_at(scales);
    case WeightFormat::kFp4: {
      const auto byte = std::to_integer<std::uint8_t>(tile[index / 2]);
      const numerics::Fp4E2m1 code =
          index % 2 == 0 ? numerics::even_fp4(byte) : numerics::odd_fp4(byte);
      return numerics::to_float(code) * scale(row % kTileRows);
    }
    case WeightFormat::kF32:
      return float_at(tile + index * 4);
    case WeightFormat::kAffine4: {
      const auto byte = std::to_integer<unsigned>(tile[index / 2]);
      return affine_value(matrix.format, index % 2 == 0 ? byte & 15u : byte >> 4,
                          scales + row % kTileRows * sizeof(float));
    }
    case WeightFormat::kAffine8:
      return affine_value(matrix.format, std::to_integer<unsigned>(tile[index]),
                          scales + row % kTileRows * sizeof(float));
    case WeightFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

float code_at(const WeightMatrix& matrix, std::size_t row, std::size_t column) {
  LOCKET_DCHECK(matrix.format == WeightFormat::kFp8F32);
  const std::size_t tile_number = row / kTileRows * matrix.column_groups() + column / kTileColumns;
  const std::byte* tile = matrix.tiles.data() + tile_number * tile_bytes(matrix.format);
  return fp8_value(tile[fp8_tile_place(row % kTileRows, column % kTileColumns)]);
}

float scale_at(const WeightMatrix& matrix, std::size_t row, std::size_t column) {
  LOCKET_DCHECK(matrix.format == WeightFormat::kFp8F32);
  const std::size_t tile_number = row / kTileRows * matrix.column_groups() + column / kTileColumns;
  return float_at(matrix.scales.data() + tile_number * sizeof(float));
}

}  // namespace locket::kernels
