// A weight matrix [rows, columns] as kernels stream it: its stored codes, never widened, rearranged
// once at load into "16 rows in 16 lanes". out[n] = sum over k of x[k] * weight(n, k).
//
// Layout: rows in groups of 16 (the last padded with zero weights), columns in groups of 32 (the
// last padded with zeros). One tile of 16 x 32 is contiguous, tiles of a row group follow in column
// order:
//
//   kBf16  16 vectors of 16 dwords: vector 4i + q, lane r = (w[r][8i + q], w[r][8i + q + 4])
//   kFp8    8 vectors of 64 bytes, codes and places as fp8_tile.h has them; one E8M0 scale a tile
//   kFp4    4 vectors of 16 dwords: vector i, lane r = codes w[r][8i .. 8i + 7], low nibble first;
//           16 E8M0 scales a tile, one a row (padded rows: 1)
//   kF32   32 vectors of 16 floats: vector k, lane r = w[r][k]
//   kFp8F32  tiles as kFp8; one float32 scale a tile
//   kAffine4  tiles as kFp4; float32 scales of 16 rows, then their offsets
//   kAffine8  8 vectors of 16 dwords: vector i, lane r = codes w[r][4i .. 4i + 3], lowest first;
//             scales as kAffine4
//
// A scale of kFp8F32 is no power of two, so that code * scale is not exact: the products of a group
// of 32 are those of the codes, and the scale multiplies their sum (sum_order.h, scaled_dot).
// A weight of kAffine4 and kAffine8 is code * scale + offset, product and sum each rounded to
// float32 and denormals zero: what the blocks of GGUF files are defined as.
//
// Immutable after packing; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "tensor/aligned_buffer.h"

namespace locket::kernels {

enum class WeightFormat {
  kBf16,  // 2 bytes an element
  kFp8,   // E4M3, one E8M0 scale per 32 x 32
  kFp4,   // E2M1, one E8M0 scale per row and 32 columns
  kF32,
  kFp8F32,   // E4M3, one float32 scale per 128 x 128
  kAffine4,  // 4 bits without a sign, one float32 scale and offset per row and 32 columns
  kAffine8,  // the same with 8 bits
  kCount
};

// Bytes of one 16 x 32 tile without scales.
constexpr std::size_t tile_bytes(WeightFormat format) {
  switch (format) {
    case WeightFormat::kBf16:
      return 16 * 32 * 2;
    case WeightFormat::kFp8:
    case WeightFormat::kFp8F32:
    case WeightFormat::kAffine8:
      return 16 * 32;
    case WeightFormat::kFp4:
    case WeightFormat::kAffine4:
      return 16 * 32 / 2;
    case WeightFormat::kF32:
      return 16 * 32 * 4;
    case WeightFormat::kCount:
      break;
  }
  return 0;
}

// Bytes of the scales of one tile.
constexpr std::size_t tile_scale_bytes(WeightFormat format) {
  switch (format) {
    case WeightFormat::kFp8:
      return 1;
    case WeightFormat::kFp4:
      return 16;
    case WeightFormat::kFp8F32:
      return sizeof(float);
    case WeightFormat::kAffine4:
    case WeightFormat::kAffine8:
      return 2 * 16 * sizeof(float);
    case WeightFormat::kBf16:
    case WeightFormat::kF32:
    case WeightFormat::kCount:
      break;
  }
  return 0;
}

constexpr bool is_affine(WeightFormat format) {
  return format == WeightFormat::kAffine4 || format == WeightFormat::kAffine8;
}

// Columns come in groups of 32 only.
constexpr bool needs_whole_groups(WeightFormat format) {
  return format == WeightFormat::kFp4 || is_affine(format);
}

struct WeightMatrix {
  WeightFormat format = WeightFormat::kF32;
  std::size_t rows = 0;
  std::size_t columns = 0;
  tensor::AlignedBuffer tiles;   // [row groups, column groups, tile]
  tensor::AlignedBuffer scales;  // [row groups, column groups, tile_scale_bytes]

  std::size_t row_groups() const { return (rows + 15) / 16; }
  std::size_t column_groups() const { return (columns + 31) / 32; }
  std::size_t byte_count() const { return tiles.size() + scales.size(); }
};

// The checkpoint's bytes of a matrix, row-major. `scales` is empty for kBf16 and kF32;
// [ceil(rows / 32), ceil(columns / 32)] for kFp8; [rows, columns / 32] for kFp4; float32
// [ceil(rows / 128), ceil(columns / 128)] for kFp8F32; float32 [rows, columns / 32, 2], scale and
// offset, for kAffine4 and kAffine8. Two codes of kFp4 and kAffine4 a byte, the first in the low
// half.
struct StoredMatrix {
  WeightFormat format = WeightFormat::kF32;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::span<const std::byte> values;
  std::span<const std::byte> scales;
};

// kBadCheckpoint if a scale is NaN (code 255, or a float32 that is not finite) or an E4M3 code is
// NaN: no output may come from it. REQUIRES: whole groups of 32 columns where the format needs
// them.
[[nodiscard]] Result<WeightMatrix> pack_weights(const StoredMatrix& stored);

// The same in pieces, for weights that come from disk piece by piece: a matrix without content,
// then the stored values of rows from `first_row` on, in any order, and all scales at once (needed
// even where there are none). The memory of a matrix may be filled anew with another one of the
// same format and shape. Different rows may be packed at the same time. Errors as pack_weights().
// REQUIRES: `first_row` is a multiple of 16; `values` holds whole groups of 16 rows, or all rows to
// the last.
WeightMatrix unpacked_matrix(WeightFormat format, std::size_t rows, std::size_t columns);
[[nodiscard]] Status pack_values(std::span<const std::byte> values, std::size_t first_row,
                                 WeightMatrix& matrix);
[[nodiscard]] Status pack_scales(std::span<const std::byte> scales, WeightMatrix& matrix);

// Memory that a packed matrix takes.
std::size_t packed_bytes(WeightFormat format, std::size_t rows, std::size_t columns);
// Bytes of the stored form: of one row of values, and of all scales.
std::size_t stored_row_bytes(WeightFormat format, std::size_t columns);
std::size_t stored_scale_bytes(WeightFormat format, std::size_t rows, std::size_t columns);

// Weight (row, column) as float32; the specification of the layout. Exact, but rounded for kFp8F32,
// whose products go by code and scale.
float weight_at(const WeightMatrix& matrix, std::size_t row, std::size_t column);
// REQUIRES: kFp8F32.
float code_at(const WeightMatrix& matrix, std::size_t row, std::size_t column);
float scale_at(const WeightMatrix& matrix, std::size_t row, std::size_t column);

}  // namespace locket::kernels
