// Index scores in integers, a block of 64 stored keys at a time.
//
// Keys and queries are E2M1 codes times powers of two, so a head's values are whole numbers times
// one power of two, 2^u, and so are a key's while its four scales differ by no more than 2^6. The
// dot product is then an integer times 2^(u_query + u_key), and the float32 steps of ordered_dot
// give exactly that: every product and every partial sum is a multiple of 2^(u_query + u_key) and
// below 2^24 times it (128 x 127 x 768 or 128 x 1023 x 96), so nothing is rounded. Nothing is
// flushed or overflows either: queries with a magnitude above 2^40 or below 2^-50 and keys with a
// scale code outside 72..157 are left to the kernels for any values, so that 2^(u_query + u_key) is
// at least 2^-122 and the sum below 2^91.
//
// The terms weight * max(dot, 0) and their sum are rounded, in float32. A power of two may be
// applied before or after: as long as no term is denormal or overflows, the roundings fall alike.
// u_query goes into the weight, whose size then is 0 or within 2^-43..2^50, and u_key is applied to
// the sum, which is 0 or a multiple of 2^-128 by then: exact, even where it is denormal.
//
// Codes of a block stand as the products take them: four vectors of 16 keys, each in 32 times 64
// bytes, four dims of 16 keys.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/index_scan.h"

namespace locket::kernels::cpu {

inline constexpr std::size_t kIntegerDim = 128;
inline constexpr std::size_t kIntegerRowBytes = 68;
inline constexpr std::size_t kBlockKeys = 64;
inline constexpr std::size_t kVectorKeys = 16;
inline constexpr std::size_t kBlockVectors = kBlockKeys / kVectorKeys;
inline constexpr std::size_t kVectorBytes = kVectorKeys * kIntegerDim;
inline constexpr std::size_t kVectorSteps = kIntegerDim / 4;

// A key's numbers are 8 * near + far if its vector holds a wide key, else near.
struct alignas(64) KeyBlock {
  std::array<std::byte, kBlockVectors * kVectorBytes> near;
  std::array<std::byte, kBlockVectors * kVectorBytes> far;  // of vectors with wide keys
  std::array<float, kBlockKeys> units;                      // 2^u of the keys
  std::uint64_t wide;   // bit of a key: its scales differ by more than 2^3
  std::uint64_t unfit;  // bit of a key: integers do not hold it, its numbers mean nothing

  bool is_wide(std::size_t vector) const { return (wide >> (vector * kVectorKeys) & 0xFFFFu) != 0; }
};

// What a code times 2^(0..3) is stored as: byte code + 16 * shift.
struct alignas(64) CodeTable {
  std::array<std::uint8_t, 64> bytes;
};

struct IndexBlockKernels {
  // Around all calls of multiply() of a thread; other kernels may run between end() and begin()
  // only.
  void (*begin)();
  void (*end)();
  // 64 rows of kIntegerRowBytes; the line at `ahead` and those behind it are fetched for later.
  void (*decode)(const std::byte* rows, const std::byte* ahead, KeyBlock& block);
  // scores [blocks][64] of one query with integers. Where a query has two planes, those of vectors
  // with wide keys mean nothing.
  void (*multiply)(const IndexQuery& query, std::span<const KeyBlock> blocks, float* scores);
};

// `exact` scores keys of any values; `blocks` may be null.
struct IndexScanKernels {
  const IndexBlockKernels* blocks;
  void (*exact)(const IndexScoreInput& input, std::span<float> scores);
};

void scan_keys(const IndexScanKernels& kernels, const IndexScan& scan);

// For all of AVX-512 up to VBMI and VNNI.
const IndexBlockKernels& vnni_index_kernels();
// The same and AMX; REQUIRES amx_is_usable().
const IndexBlockKernels& amx_index_kernels();

// AVX-512 up to VBMI.
void decode_index_block(const CodeTable& table, const std::byte* rows, const std::byte* ahead,
                        KeyBlock& block);

}  // namespace locket::kernels::cpu
