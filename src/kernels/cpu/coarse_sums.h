// The integer sums of coarse_matrix.h, one function per kind of instructions.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/coarse_matrix.h"

namespace locket::kernels::cpu {

// out [tokens][(last - first) * 16]; as KernelTable::coarse_sums.
void avx2_coarse_sums(const CoarseMatrix& w, const CoarseRows& x, std::size_t first,
                      std::size_t last, std::int64_t* out);
// AVX-512 with VNNI.
void vnni_coarse_sums(const CoarseMatrix& w, const CoarseRows& x, std::size_t first,
                      std::size_t last, std::int64_t* out);

}  // namespace locket::kernels::cpu
