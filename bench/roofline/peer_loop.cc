#include "roofline/peer_loop.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <immintrin.h>

namespace locket::bench {
namespace {

// Twice the values of the codes.
alignas(16) constexpr std::int8_t kDoubled[16] = {0, 1,  2,  3,  4,  6,  8,  12,
                                                  0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace

PeerRow peer_row(std::span<const float> x) {
  PeerRow row;
  row.codes.resize(x.size());
  for (std::size_t first = 0; first < x.size(); first += 32) {
    const std::span<const float> group = x.subspan(first, 32);
    float largest = 0.0f;
    for (const float value : group) largest = std::max(largest, std::fabs(value));
    const float inverse = largest > 0.0f ? 127.0f / largest : 0.0f;
    for (std::size_t i = 0; i < 32; ++i) {
      row.codes[first + i % 2 * 16 + i / 2] =
          static_cast<std::int8_t>(std::lrint(group[i] * inverse));
    }
    row.scales.push_back(largest / 254.0f);
  }
  return row;
}

#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace {

// Sums of one group of 32 columns in eight lanes.
inline __m256 group_sums(const std::byte* codes, const std::int8_t* x) {
  const __m256i table =
      _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(kDoubled)));
  const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
  const __m256i nibbles =
      _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(both, 4), both), _mm256_set1_epi8(15));
  const __m256i weights = _mm256_shuffle_epi8(table, nibbles);
  const __m256i values = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  const __m256i products =
      _mm256_maddubs_epi16(_mm256_sign_epi8(weights, weights), _mm256_sign_epi8(values, weights));
  return _mm256_cvtepi32_ps(_mm256_madd_epi16(products, _mm256_set1_epi16(1)));
}

inline __m256 group_scale(std::byte scale, float x_scale) {
  const std::uint32_t bits = std::to_integer<std::uint32_t>(scale) << 23;
  float value = 0.0f;
  std::memcpy(&value, &bits, sizeof value);
  return _mm256_set1_ps(value * x_scale);
}

float row_product(const std::byte* codes, const std::byte* scales, const PeerRow& x) {
  __m256 even = _mm256_setzero_ps();
  __m256 odd = _mm256_setzero_ps();
  for (std::size_t group = 0; group < x.scales.size(); group += 2) {
    even = _mm256_fmadd_ps(group_sums(codes + group * 16, x.codes.data() + group * 32),
                           group_scale(scales[group], x.scales[group]), even);
    odd = _mm256_fmadd_ps(group_sums(codes + group * 16 + 16, x.codes.data() + group * 32 + 32),
                          group_scale(scales[group + 1], x.scales[group + 1]), odd);
  }
  alignas(32) float lanes[8];
  _mm256_store_ps(lanes, _mm256_add_ps(even, odd));
  float sum = 0.0f;
  for (const float lane : lanes) sum += lane;
  return sum;
}

}  // namespace

void peer_product(const std::byte* codes, const std::byte* scales, const PeerRow& x,
                  std::span<float> out) {
  const std::size_t groups = x.scales.size();
  for (std::size_t row = 0; row < out.size(); ++row) {
    out[row] = row_product(codes + row * groups * 16, scales + row * groups, x);
  }
}

#pragma GCC pop_options

}  // namespace locket::bench
