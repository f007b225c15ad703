// How tiles of a weight matrix hold E4M3 codes: every code as another byte, from which two lookups
// of 64 entries give its bfloat16 value, denormal codes too. Kernels do one instruction a lookup;
// all 128 positive codes would take three.
//
// A byte is [sign, high, six bits of index]. With value * 2^10 as a bfloat16 of two bytes:
//
//   upper = kFp8Tile.upper[index] | (byte & 0xC0)
//   lower = kFp8Tile.lower[index] & (byte | 0xBF)
//
// `high` is the first bit of the mantissa: two values that differ only there share an entry, which
// makes 60 entries of the normal codes, one each of (2, 3), (4, 6) and (5, 7) steps of 2^-9. Zero
// and one step are left over for one entry; times 2^10 the step is 2, which differs from zero only
// in the bit of `upper` that `high` sets. All other values have that bit: it is the first of their
// exponents. That is what the factor is for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace locket::kernels {

// Values in tiles are larger than those of the codes by 2 to this.
inline constexpr unsigned kFp8TileShift = 10;

// REQUIRES: `code` is no NaN, 0x7F or 0xFF.
constexpr std::uint8_t to_fp8_tile(std::uint8_t code) {
  const unsigned sign = code & 0x80u;
  const unsigned steps = code & 0x7Fu;
  unsigned index = 0;
  unsigned high = 0;
  if (steps >= 8) {
    index = steps / 8 * 4 + steps % 4;
    high = steps / 4 % 2;
  } else if (steps >= 4) {
    index = 2 + steps % 2;
    high = steps / 2 % 2;
  } else {
    index = steps / 2;
    high = steps % 2;
  }
  return static_cast<std::uint8_t>(sign | high << 6 | index);
}

// The code that became `byte`.
constexpr std::uint8_t from_fp8_tile(std::uint8_t byte) {
  const unsigned sign = byte & 0x80u;
  const unsigned high = byte / 64u % 2;
  const unsigned index = byte % 64u;
  unsigned steps = index * 2 + high;
  if (index >= 4) {
    steps = index / 4 * 8 + high * 4 + index % 4;
  } else if (index >= 2) {
    steps = 4 + high * 2 + index % 2;
  }
  return static_cast<std::uint8_t>(sign | steps);
}

// Place of element (row, column) in a tile of 16 x 32: 8 vectors of 64 bytes; in vector 2i + h, 16
// bytes belong to 4 rows: 8 of the pairs of columns (8i + 2h, 8i + 2h + 4) of each row, then 8 of
// the pairs one column further. Interleaving `lower` with `upper` gives one dword a row and pair.
constexpr std::size_t fp8_tile_place(std::size_t row, std::size_t column) {
  const std::size_t vector = column / 8 * 2 + column % 4 / 2;
  return vector * 64 + row / 4 * 16 + column % 2 * 8 + row % 4 * 2 + column % 8 / 4;
}

struct Fp8TileTables {
  alignas(64) std::array<std::uint8_t, 64> lower;
  alignas(64) std::array<std::uint8_t, 64> upper;
};

constexpr Fp8TileTables fp8_tile_tables() {
  Fp8TileTables tables{};
  constexpr unsigned kBothOfHigh = 0x40;
  for (unsigned index = 4; index < 64; ++index) {
    const unsigned exponent = index / 4 + 120 + kFp8TileShift;
    tables.upper[index] = static_cast<std::uint8_t>(exponent / 2);
    tables.lower[index] =
        static_cast<std::uint8_t>(exponent % 2 * 0x80 + kBothOfHigh + index % 4 * 0x10);
  }
  // 0 and 2; 4 and 6; 8 and 12; 10 and 14.
  tables.upper[0] = 0x00;
  tables.lower[0] = 0x00;
  tables.upper[1] = 0x40;
  tables.lower[1] = 0x80 + kBothOfHigh;
  tables.upper[2] = 0x41;
  tables.lower[2] = kBothOfHigh;
  tables.upper[3] = 0x41;
  tables.lower[3] = 0x20 + kBothOfHigh;
  return tables;
}

inline constexpr Fp8TileTables kFp8Tile = fp8_tile_tables();

// Bits of the bfloat16 value * 2^kFp8TileShift.
constexpr std::uint16_t fp8_tile_bf16(std::uint8_t byte) {
  const unsigned upper = kFp8Tile.upper[byte % 64u] | (byte & 0xC0u);
  const unsigned lower = kFp8Tile.lower[byte % 64u] & (byte | 0xBFu);
  return static_cast<std::uint16_t>(upper << 8 | lower);
}

}  // namespace locket::kernels
