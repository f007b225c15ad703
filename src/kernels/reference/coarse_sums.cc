#include "kernels/coarse_matrix.h"
#include "kernels/reference/reference.h"

namespace locket::kernels::reference {

void coarse_sums(const CoarseMatrix& w, const CoarseRows& x, std::size_t first, std::size_t last,
                 std::int64_t* out) {
  const std::size_t stride = (last - first) * kCoarseLanes;
  for (std::size_t i = 0; i < x.tokens * stride; ++i) {
    const std::int16_t* codes = x.token_codes(i / stride);
    const std::size_t row = first * kCoarseLanes + i % stride;
    const std::byte* group =
        w.codes.data() + row / kCoarseLanes * w.quads() * kCoarseLanes * kCoarseQuad;
    std::int64_t sum = 0;
    for (std::size_t k = 0; k < w.quads() * kCoarseQuad; ++k) {
      const std::size_t at =
          (k / kCoarseQuad * kCoarseLanes + row % kCoarseLanes) * kCoarseQuad + k % kCoarseQuad;
      sum += codes[k] * (std::to_integer<int>(group[at]) - kCoarseOffset);
    }
    out[i] = sum;
  }
}

}  // namespace locket::kernels::reference
