// The largest output of a product with weights, without most of the product: greedy decoding needs
// no other logit. Every output is bounded from a compact copy of the weights (coarse_matrix.h), and
// only those that may be the largest are computed, by the kernel and with the bits of matmul(). The
// answer is that of the whole product, always.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/worker_pool.h"
#include "kernels/coarse_matrix.h"
#include "kernels/matmul.h"
#include "kernels/weight_matrix.h"

namespace locket::kernels {

struct LargestProduct {
  std::size_t row = 0;       // the lowest of equal ones; the number of rows if none is finite
  float value = 0.0f;        // of that row
  std::size_t broken = 0;    // outputs that are NaN or plus infinity: they are left out
  std::size_t computed = 0;  // outputs that were computed
};

// The same over outputs that are there, all of them.
LargestProduct find_largest(std::span<const float> outputs);

// One per row of x. REQUIRES: `copy` is that of w; at most kMostCoarseRows rows of x.
std::vector<LargestProduct> largest_products(const WeightMatrix& w, const CoarseMatrix& copy,
                                             const ActivationRows& x, WorkerPool& workers);

}  // namespace locket::kernels
