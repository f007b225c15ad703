#include "kernels/weight_matrix.h"

#include <cstring>
#include <string>

#include "base/check.h"
#include "numerics/bf16.h"
#include "numerics/e8m0.h"
#include "numerics/fp4_e2m1.h"
#include "numerics/fp8_e4m3.h"

namespace locket::kernels {
namespace {

constexpr std::size_t kTileRows = 16;
constexpr std::size_t kTileColumns = 32;

// Byte (kFp8), half-word (kBf16) or float (kF32) index of element (row, column) inside its tile.
std::size_t element_index(WeightFormat format, std::size_t row, std::size_t column) {
  const std::size_t eight = column / 8;
  const std::size_t in_eight = column % 8;
  const std::size_t pair = in_eight % 4;
  const std::size_t high = in_eight / 4;
  switch (format) {
    case WeightFormat::kBf16:
      return ((eight * 4 + pair) * kTileRows + row) * 2 + high;
    case WeightFormat::kFp8:
      return ((eight * 2 + pair / 2) * kTileRows + row) * 4 + (pair % 2) * 2 + high;
    case WeightFormat::kFp4:
      return (eight * kTileRows + row) * 8 + in_eight;
    case WeightFormat::kF32:
      return column * kTileRows + row;
    case WeightFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::size_t stored_row_bytes(const StoredMatrix& stored) {
  switch (stored.format) {
    case WeightFormat::kBf16:
      return stored.columns * 2;
    case WeightFormat::kFp8:
      return stored.columns;
    case WeightFormat::kFp4:
      return stored.columns / 2;
    case WeightFormat::kF32:
      return stored.columns * 4;
    case WeightFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::size_t stored_scale_count(const StoredMatrix& stored) {
  const std::size_t column_groups = (stored.columns + 31) / 32;
  if (stored.format == WeightFormat::kFp8) return (stored.rows + 31) / 32 * column_groups;
  if (stored.format == WeightFormat::kFp4) return stored.rows * column_groups;
  return 0;
}

void copy_row(const StoredMatrix& stored, std::size_t row, std::byte* tile_row,
              std::size_t tile_stride) {
  const std::size_t lane = row % kTileRows;
  const std::byte* source = stored.values.data() + row * stored_row_bytes(stored);
  for (std::size_t column = 0; column < stored.columns; ++column) {
    std::byte* tile = tile_row + column / kTileColumns * tile_stride;
    const std::size_t index = element_index(stored.format, lane, column % kTileColumns);
    if (stored.format == WeightFormat::kBf16) {
      std::memcpy(tile + index * 2, source + column * 2, 2);
    } else if (stored.format == WeightFormat::kF32) {
      std::memcpy(tile + index * 4, source + column * 4, 4);
    } else if (stored.format == WeightFormat::kFp8) {
      tile[index] = source[column];
    } else if (column % 2 == 0) {  // both nibbles of a byte keep their places
      tile[index / 2] = source[column / 2];
    }
  }
}

void copy_scales(const StoredMatrix& stored, WeightMatrix& matrix) {
  const std::size_t column_groups = matrix.column_groups();
  std::byte* target = matrix.scales.data();
  if (stored.format == WeightFormat::kFp8) {
    for (std::size_t group = 0; group < matrix.row_groups(); ++group) {
      std::memcpy(target + group * column_groups, stored.scales.data() + group / 2 * column_groups,
                  column_groups);
    }
  } else if (stored.format == WeightFormat::kFp4) {
    constexpr int kOne = 127;  // for the padded rows; the others follow
    std::memset(target, kOne, matrix.scales.size());
    for (std::size_t row = 0; row < stored.rows; ++row) {
      for (std::size_t group = 0; group < column_groups; ++group) {
        target[(row / kTileRows * column_groups + group) * kTileRows + row % kTileRows] =
            stored.scales[row * column_groups + group];
      }
    }
  }
}

Status check_codes(const StoredMatrix& stored) {
  for (std::size_t i = 0; i < stored.scales.size(); ++i) {
    if (std::to_integer<std::uint8_t>(stored.scales[i]) == numerics::kE8m0NanCode) {
      return fail(ErrorCode::kBadCheckpoint,
                  "scale " + std::to_string(i) + " is NaN (E8M0 code 255)");
    }
  }
  if (stored.format != WeightFormat::kFp8) return {};
  for (std::size_t i = 0; i < stored.values.size(); ++i) {
    if ((std::to_integer<unsigned>(stored.values[i]) & 0x7Fu) == 0x7Fu) {
      return fail(ErrorCode::kBadCheckpoint, "value " + std::to_string(i) + " is NaN (E4M3)");
    }
  }
  return {};
}

}  // namespace

Result<WeightMatrix> pack_weights(const StoredMatrix& stored) {
  LOCKET_CHECK(stored.values.size() == stored.rows * stored_row_bytes(stored));
  LOCKET_CHECK(stored.scales.size() == stored_scale_count(stored));
  LOCKET_CHECK(stored.format != WeightFormat::kFp4 || stored.columns % 32 == 0);
  LOCKET_TRY_STATUS(check_codes(stored));
  WeightMatrix matrix{.format = stored.format,
                      .rows = stored.rows,
                      .columns = stored.columns,
                      .tiles = {},
                      .scales = {}};
  const std::size_t tile_count = matrix.row_groups() * matrix.column_groups();
  const std::size_t tile_stride = tile_bytes(stored.format);
  matrix.tiles = tensor::AlignedBuffer(tile_count * tile_stride);
  matrix.scales = tensor::AlignedBuffer(tile_count * tile_scales(stored.format));
  for (std::size_t row = 0; row < stored.rows; ++row) {
    copy_row(stored, row,
             matrix.tiles.data() + row / kTileRows * matrix.column_groups() * tile_stride,
             tile_stride);
  }
  copy_scales(stored, matrix);
  return matrix;
}

float weight_at(const WeightMatrix& matrix, std::size_t row, std::size_t column) {
  const std::size_t tile_number = row / kTileRows * matrix.column_groups() + column / kTileColumns;
  const std::byte* tile = matrix.tiles.data() + tile_number * tile_bytes(matrix.format);
  const std::byte* scales = matrix.scales.data() + tile_number * tile_scales(matrix.format);
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
      return numerics::to_float(numerics::Fp8E4m3{std::to_integer<std::uint8_t>(tile[index])}) *
             scale(0);
    case WeightFormat::kFp4: {
      const auto byte = std::to_integer<std::uint8_t>(tile[index / 2]);
      const numerics::Fp4E2m1 code =
          index % 2 == 0 ? numerics::even_fp4(byte) : numerics::odd_fp4(byte);
      return numerics::to_float(code) * scale(row % kTileRows);
    }
    case WeightFormat::kF32: {
      float value = 0.0f;
      std::memcpy(&value, tile + index * 4, 4);
      return value;
    }
    case WeightFormat::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace locket::kernels
