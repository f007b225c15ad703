// Codes become 16 bits, and vpmaddwd adds two products of 16 bits in 32. A pair is below 2 * 255 *
// 16256 < 2^23, so that sums of kQuadsAtOnce quads still fit.
#include <algorithm>
#include <array>
#include <immintrin.h>

#include "hwy/base.h"
#include "kernels/cpu/coarse_sums.h"
#include "kernels/cpu/panel.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kQuadBytes = kCoarseLanes * kCoarseQuad;
constexpr std::size_t kQuadsAtOnce = 128;
constexpr std::size_t kParts = 4;  // vectors of four rows, two sums each

}  // namespace
}  // namespace locket::kernels::cpu

HWY_PUSH_ATTRIBUTES("avx2,fma")
namespace locket::kernels::cpu {
namespace {

// Adds the products of `quads` quads to the sums of the 16 rows, one row of activations.
void add_quads(const std::byte* codes, const std::int16_t* x, std::size_t quads,
               std::int64_t* sums) {
  __m256i parts[kParts];
  for (__m256i& part : parts) part = _mm256_setzero_si256();
  for (std::size_t quad = 0; quad < quads; ++quad) {
    prefetch_ahead(codes + quad * kQuadBytes, kQuadBytes);
    long long four;
    __builtin_memcpy(&four, x + quad * kCoarseQuad, sizeof(four));
    const __m256i values = _mm256_set1_epi64x(four);
#pragma GCC unroll 4
    for (std::size_t part = 0; part < kParts; ++part) {
      const auto* at =
          reinterpret_cast<const __m128i*>(codes + quad * kQuadBytes + part * sizeof(__m128i));
      const __m256i weights = _mm256_cvtepu8_epi16(_mm_loadu_si128(at));
      parts[part] = _mm256_add_epi32(parts[part], _mm256_madd_epi16(weights, values));
    }
  }
  for (std::size_t part = 0; part < kParts; ++part) {
    alignas(32) std::array<std::int32_t, 8> pairs;
    _mm256_store_si256(reinterpret_cast<__m256i*>(pairs.data()), parts[part]);
    for (std::size_t row = 0; row < 4; ++row) {
      sums[part * 4 + row] += std::int64_t{pairs[2 * row]} + pairs[2 * row + 1];
    }
  }
}

}  // namespace
}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES

namespace locket::kernels::cpu {

void avx2_coarse_sums(const CoarseMatrix& w, const CoarseRows& x, std::size_t first,
                      std::size_t last, std::int64_t* out) {
  const std::size_t stride = (last - first) * kCoarseLanes;
  for (std::size_t group = first; group < last; ++group, out += kCoarseLanes) {
    const std::byte* codes = w.codes.data() + group * x.quads * kQuadBytes;
    for (std::size_t t = 0; t < x.tokens; ++t) {
      std::fill_n(out + t * stride, kCoarseLanes, -kCoarseOffset * x.sums[t]);
    }
    // A stretch of codes stays in the nearest cache for all tokens.
    for (std::size_t quad = 0; quad < x.quads; quad += kQuadsAtOnce) {
      const std::size_t quads = std::min(kQuadsAtOnce, x.quads - quad);
      for (std::size_t t = 0; t < x.tokens; ++t) {
        add_quads(codes + quad * kQuadBytes, x.token_codes(t) + quad * kCoarseQuad, quads,
                  out + t * stride);
      }
    }
  }
}

}  // namespace locket::kernels::cpu
