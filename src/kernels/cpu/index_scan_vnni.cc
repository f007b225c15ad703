// Index scores with vpdpbusd: 4 heads x 64 keys at a time. Keys are the unsigned operand, 96 above
// their numbers; what that adds is known beforehand and taken off.
#include "hwy/base.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
#endif
#include <cstring>
#include <immintrin.h>

#include "kernels/cpu/index_codes.h"
#include "kernels/cpu/index_scan.h"

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512vnni,avx2,fma")
namespace locket::kernels::cpu {
namespace {

constexpr int kOffset = 96;
constexpr CodeTable kCodes = code_table(kOffset);
constexpr std::size_t kHeads = 4;

constexpr std::size_t kSums = kHeads * kBlockVectors;

// Of head h and vector g in vector 4h + g.
using Sums = __m512i[kSums];

HWY_INLINE void take_off_offset(const std::int32_t* code_sums, Sums& sums) {
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kSums; ++i) {
    const __m512i offset = _mm512_set1_epi32(kOffset * code_sums[i / kBlockVectors]);
    sums[i] = _mm512_sub_epi32(sums[i], offset);
  }
}

HWY_INLINE __m512i four_codes(const std::byte* codes) {
  std::int32_t four;
  std::memcpy(&four, codes, sizeof four);
  return _mm512_set1_epi32(four);
}

// sum += four unsigned times four signed numbers. As assembly: around its intrinsic GCC 12 copies
// the sums to other registers and back.
HWY_INLINE void add_dot(__m512i& sum, __m512i numbers, __m512i codes) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(numbers), "v"(codes));
}

// Adds numbers [4 vectors][2048] times codes [4][128].
HWY_INLINE void add_products(const std::byte* numbers, const std::byte* codes, Sums& sums) {
  for (std::size_t step = 0; step < kVectorSteps; ++step) {
    __m512i keys[kBlockVectors];
    HWY_UNROLL(4)
    for (std::size_t g = 0; g < kBlockVectors; ++g) {
      keys[g] = _mm512_load_si512(numbers + g * kVectorBytes + step * 64);
    }
    HWY_UNROLL(4)
    for (std::size_t h = 0; h < kHeads; ++h) {
      const __m512i query = four_codes(codes + h * kIntegerDim + step * 4);
      HWY_UNROLL(4)
      for (std::size_t g = 0; g < kBlockVectors; ++g) {
        add_dot(sums[h * kBlockVectors + g], keys[g], query);
      }
    }
  }
}

// The dot products of four heads with a block, for all planes.
HWY_INLINE void multiply_heads(const IntegerQuery& query, std::size_t head, const KeyBlock& block,
                               Sums& sums) {
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kSums; ++i) sums[i] = _mm512_setzero_si512();
  const std::byte* codes = query.codes.data() + head * kIntegerDim;
  const std::int32_t* code_sums = query.sums.data() + head;
  add_products(block.near.data(), codes, sums);
  take_off_offset(code_sums, sums);
  if (query.planes == 1) return;
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kSums; ++i) sums[i] = _mm512_slli_epi32(sums[i], 3);
  add_products(block.near.data(), codes + query.padded_heads * kIntegerDim, sums);
  take_off_offset(code_sums + query.padded_heads, sums);
}

// sum = 8 * sum + far numbers of a vector times codes [128].
HWY_INLINE __m512i add_far(const std::byte* numbers, const std::byte* codes, std::int32_t code_sum,
                           __m512i sum) {
  sum = _mm512_sub_epi32(_mm512_slli_epi32(sum, 3), _mm512_set1_epi32(kOffset * code_sum));
  for (std::size_t step = 0; step < kVectorSteps; ++step) {
    const __m512i keys = _mm512_load_si512(numbers + step * 64);
    add_dot(sum, keys, four_codes(codes + step * 4));
  }
  return sum;
}

// Where vectors hold wide keys.
HWY_INLINE void add_all_far(const IntegerQuery& query, std::size_t head, const KeyBlock& block,
                            Sums& sums) {
  const std::byte* codes = query.codes.data() + head * kIntegerDim;
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kSums; ++i) {
    const std::size_t vector = i % kBlockVectors;
    const std::size_t h = i / kBlockVectors;
    if (!block.is_wide(vector)) continue;
    sums[i] = add_far(block.far.data() + vector * kVectorBytes, codes + h * kIntegerDim,
                      query.sums[head + h], sums[i]);
  }
}

void score_block(const IndexQuery& query, const KeyBlock& block, float* scores) {
  const IntegerQuery& integers = query.integers;
  __m512 totals[kBlockVectors];
  HWY_UNROLL(4)
  for (std::size_t g = 0; g < kBlockVectors; ++g) totals[g] = _mm512_setzero_ps();
  for (std::size_t head = 0; head < query.heads; head += kHeads) {
    Sums sums;
    multiply_heads(integers, head, block, sums);
    if (block.wide != 0 && integers.planes == 1) add_all_far(integers, head, block, sums);
    HWY_UNROLL(16)
    for (std::size_t i = 0; i < kSums; ++i) {
      const __m512 factor = _mm512_set1_ps(integers.factors[head + i / kBlockVectors]);
      const __m512i positive = _mm512_max_epi32(sums[i], _mm512_setzero_si512());
      const __m512 term = _mm512_mul_ps(factor, _mm512_cvtepi32_ps(positive));
      totals[i % kBlockVectors] = _mm512_add_ps(totals[i % kBlockVectors], term);
    }
  }
  HWY_UNROLL(4)
  for (std::size_t g = 0; g < kBlockVectors; ++g) {
    const __m512 unit = _mm512_load_ps(block.units.data() + g * kVectorKeys);
    _mm512_storeu_ps(scores + g * kVectorKeys, _mm512_mul_ps(totals[g], unit));
  }
}

void do_nothing() {}

void decode(const std::byte* rows, const std::byte* ahead, KeyBlock& block) {
  decode_index_block(kCodes, rows, ahead, block);
}

void multiply(const IndexQuery& query, std::span<const KeyBlock> blocks, float* scores) {
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    score_block(query, blocks[b], scores + b * kBlockKeys);
  }
}

}  // namespace

const IndexBlockKernels& vnni_index_kernels() {
  static constexpr IndexBlockKernels kKernels = {
      .begin = do_nothing, .end = do_nothing, .decode = decode, .multiply = multiply};
  return kKernels;
}

}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES
