#include "kernels/cpu/fp4_pack.h"

#include <emmintrin.h>

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kRows = 16;
constexpr std::size_t kTileRowBytes = 16;  // 32 codes
constexpr std::size_t kQuads = kRows / 4;  // rows that fill a register with double words

// Double words d of four rows, for d = 0 to 3.
struct Quad {
  __m128i words[4];
};

Quad transpose(const std::byte* rows, std::size_t row_bytes) {
  const auto row = [&](std::size_t index) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(rows + index * row_bytes));
  };
  const __m128i a = row(0);
  const __m128i b = row(1);
  const __m128i c = row(2);
  const __m128i d = row(3);
  const __m128i low_ab = _mm_unpacklo_epi32(a, b);
  const __m128i low_cd = _mm_unpacklo_epi32(c, d);
  const __m128i high_ab = _mm_unpackhi_epi32(a, b);
  const __m128i high_cd = _mm_unpackhi_epi32(c, d);
  return {{_mm_unpacklo_epi64(low_ab, low_cd), _mm_unpackhi_epi64(low_ab, low_cd),
           _mm_unpacklo_epi64(high_ab, high_cd), _mm_unpackhi_epi64(high_ab, high_cd)}};
}

}  // namespace

void pack_fp4_group(std::span<const std::byte> values, std::byte* tiles) {
  const std::size_t row_bytes = values.size() / kRows;
  auto* target = reinterpret_cast<__m128i*>(tiles);
  for (std::size_t column = 0; column < row_bytes; column += kTileRowBytes) {
    const std::byte* source = values.data() + column;
    Quad quads[kQuads];
    for (std::size_t quad = 0; quad < kQuads; ++quad) {
      quads[quad] = transpose(source + 4 * quad * row_bytes, row_bytes);
    }
    // Whole cache lines one after the other.
    for (std::size_t word = 0; word < 4; ++word) {
      for (const Quad& quad : quads) _mm_stream_si128(target++, quad.words[word]);
    }
  }
  _mm_sfence();
}

}  // namespace locket::kernels::cpu
