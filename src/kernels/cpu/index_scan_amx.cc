// Index scores with tiles: 32 heads x 16 keys x 128 dims are four products. Sums go to memory and
// are weighed there, 64 keys at a time, so that the products of the next keys may run meanwhile.
#include "hwy/base.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
#endif
#include <algorithm>
#include <immintrin.h>

#include "kernels/cpu/amx.h"
#include "kernels/cpu/index_codes.h"
#include "kernels/cpu/index_scan.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx2,fma,amx-tile,amx-int8")
namespace locket::kernels::cpu {
namespace {

constexpr CodeTable kCodes = code_table(0);
constexpr std::size_t kTileRows = 16;
constexpr std::size_t kTileBytes = kTileRows * 64;
constexpr std::size_t kHeads = IntegerQuery::kHeadsAtOnce;

// Tiles 0 and 1 hold sums, 2 and 3 keys, 4 to 7 the query: 16 heads x half of the dims each.

// Dot products of 64 keys.
struct alignas(64) Sums {
  std::int32_t of[kBlockVectors][kHeads][kVectorKeys];
};

HWY_INLINE void load_query(const std::byte* codes) {
  constexpr std::size_t kHalf = kIntegerDim / 2;
  constexpr std::size_t kLower = kTileRows * kIntegerDim;
  _tile_loadd(4, codes, kIntegerDim);
  _tile_loadd(5, codes + kHalf, kIntegerDim);
  _tile_loadd(6, codes + kLower, kIntegerDim);
  _tile_loadd(7, codes + kLower + kHalf, kIntegerDim);
}

// sums [32][16] of the loaded query with 16 keys. `meanwhile` is called between the products, with
// 0 to 3: the unit for tiles and the one for vectors then work side by side.
template <class Meanwhile>
HWY_INLINE void multiply_vector(const std::byte* numbers, std::int32_t (*sums)[kVectorKeys],
                                const Meanwhile& meanwhile) {
  _tile_loadd(2, numbers, 64);
  _tile_loadd(3, numbers + kTileBytes, 64);
  _tile_zero(0);
  _tile_zero(1);
  _tile_dpbssd(0, 4, 2);
  meanwhile(0);
  _tile_dpbssd(1, 6, 2);
  meanwhile(1);
  _tile_dpbssd(0, 5, 3);
  meanwhile(2);
  _tile_dpbssd(1, 7, 3);
  meanwhile(3);
  _tile_stored(0, sums, 64);
  _tile_stored(1, sums + kTileRows, 64);
}

HWY_INLINE void do_nothing(std::size_t) {}

// sums = 8 * sums + more.
HWY_INLINE void fold(std::int32_t (*sums)[kVectorKeys], const std::int32_t (*more)[kVectorKeys]) {
  for (std::size_t h = 0; h < kHeads; ++h) {
    const __m512i eight = _mm512_slli_epi32(_mm512_load_si512(sums[h]), 3);
    _mm512_store_si512(sums[h], _mm512_add_epi32(eight, _mm512_load_si512(more[h])));
  }
}

// Numbers of wide keys of one plane.
HWY_NOINLINE void add_far(const KeyBlock& block, Sums& sums) {
  alignas(64) std::int32_t far[kHeads][kVectorKeys];
  for (std::size_t g = 0; g < kBlockVectors; ++g) {
    if (!block.is_wide(g)) continue;
    multiply_vector(block.far.data() + g * kVectorBytes, far, do_nothing);
    fold(sums.of[g], far);
  }
}

HWY_INLINE void multiply_block(const KeyBlock& block, Sums& sums) {
  for (std::size_t g = 0; g < kBlockVectors; ++g) {
    multiply_vector(block.near.data() + g * kVectorBytes, sums.of[g], do_nothing);
  }
}

// The terms of 32 heads; those that a query lacks have factor 0 and change nothing.
class HeadSum {
 public:
  HeadSum(const Sums& sums, const float* factors, float* scores)
      : sums_(sums), factors_(factors), scores_(scores) {
    HWY_UNROLL(4)
    for (std::size_t g = 0; g < kBlockVectors; ++g) {
      totals_[g] = _mm512_loadu_ps(scores + g * kVectorKeys);
    }
  }
  HeadSum(const HeadSum&) = delete;
  HeadSum& operator=(const HeadSum&) = delete;

  // Heads [first, last), ascending from call to call.
  HWY_INLINE void add(std::size_t first, std::size_t last) {
    for (std::size_t h = first; h < last; ++h) {
      const __m512 factor = _mm512_set1_ps(factors_[h]);
      HWY_UNROLL(4)
      for (std::size_t g = 0; g < kBlockVectors; ++g) {
        const __m512i sum = _mm512_load_si512(sums_.of[g][h]);
        const __m512i positive = _mm512_max_epi32(sum, _mm512_setzero_si512());
        const __m512 term = _mm512_mul_ps(factor, _mm512_cvtepi32_ps(positive));
        totals_[g] = _mm512_add_ps(totals_[g], term);
      }
    }
  }

  HWY_INLINE void store() const {
    HWY_UNROLL(4)
    for (std::size_t g = 0; g < kBlockVectors; ++g) {
      _mm512_storeu_ps(scores_ + g * kVectorKeys, totals_[g]);
    }
  }

 private:
  const Sums& sums_;
  const float* factors_;
  float* scores_;
  __m512 totals_[kBlockVectors];
};

void add_heads(const Sums& sums, const float* factors, float* scores) {
  HeadSum sum(sums, factors, scores);
  sum.add(0, kHeads);
  sum.store();
}

// sums of `block`, while `weighed` becomes terms.
HWY_INLINE void multiply_beside(const KeyBlock& block, Sums& sums, HeadSum& weighed) {
  constexpr std::size_t kHeadsAtOnce = kHeads / kBlockVectors / 4;
  HWY_UNROLL(4)
  for (std::size_t g = 0; g < kBlockVectors; ++g) {
    multiply_vector(block.near.data() + g * kVectorBytes, sums.of[g], [&](std::size_t quarter) {
      const std::size_t first = (g * 4 + quarter) * kHeadsAtOnce;
      weighed.add(first, first + kHeadsAtOnce);
    });
  }
  weighed.store();
}

void apply_units(const KeyBlock& block, float* scores) {
  for (std::size_t i = 0; i < kBlockKeys; i += kVectorKeys) {
    const __m512 unit = _mm512_load_ps(block.units.data() + i);
    _mm512_storeu_ps(scores + i, _mm512_mul_ps(_mm512_loadu_ps(scores + i), unit));
  }
}

void multiply_one_plane(const IndexQuery& query, std::span<const KeyBlock> blocks, float* scores) {
  Sums sums[2];
  for (std::size_t head = 0; head < query.heads; head += kHeads) {
    load_query(query.integers.codes.data() + head * kIntegerDim);
    const float* factors = query.integers.factors.data() + head;
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (b == 0) {
        multiply_block(blocks[b], sums[0]);
      } else {
        HeadSum weighed(sums[(b - 1) % 2], factors, scores + (b - 1) * kBlockKeys);
        multiply_beside(blocks[b], sums[b % 2], weighed);
      }
      if (blocks[b].wide != 0) add_far(blocks[b], sums[b % 2]);
    }
    const std::size_t last = blocks.size() - 1;
    add_heads(sums[last % 2], factors, scores + last * kBlockKeys);
  }
}

void multiply_two_planes(const IndexQuery& query, std::span<const KeyBlock> blocks, float* scores) {
  Sums sums;
  Sums second;
  const std::byte* codes = query.integers.codes.data();
  const std::size_t plane_bytes = query.integers.padded_heads * kIntegerDim;
  for (std::size_t head = 0; head < query.heads; head += kHeads) {
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      load_query(codes + head * kIntegerDim);
      multiply_block(blocks[b], sums);
      load_query(codes + plane_bytes + head * kIntegerDim);
      multiply_block(blocks[b], second);
      for (std::size_t g = 0; g < kBlockVectors; ++g) fold(sums.of[g], second.of[g]);
      add_heads(sums, query.integers.factors.data() + head, scores + b * kBlockKeys);
    }
  }
}

void decode(const std::byte* rows, const std::byte* ahead, KeyBlock& block) {
  decode_index_block(kCodes, rows, ahead, block);
}

void begin() { load_tile_config({}); }

void end() { release_tiles(); }

void multiply(const IndexQuery& query, std::span<const KeyBlock> blocks, float* scores) {
  std::fill_n(scores, blocks.size() * kBlockKeys, 0.0f);
  if (query.integers.planes == 1) {
    multiply_one_plane(query, blocks, scores);
  } else {
    multiply_two_planes(query, blocks, scores);
  }
  for (std::size_t b = 0; b < blocks.size(); ++b) apply_units(blocks[b], scores + b * kBlockKeys);
}

}  // namespace

const IndexBlockKernels& amx_index_kernels() {
  static constexpr IndexBlockKernels kKernels = {
      .begin = begin, .end = end, .decode = decode, .multiply = multiply};
  return kKernels;
}

}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES
