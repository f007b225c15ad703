// A kernel table against the plain reference on random inputs of small shapes, all number ranges
// among them: the proof, on the machine at hand, that its fast kernels give the bits that
// docs/numerics.md promises. Deterministic; works in the calling thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel_table.h"

namespace locket::kernels {

struct KernelCheck {
  std::string_view kernel;  // "matmul fp4"
  std::size_t cases = 0;
  std::size_t different = 0;  // cases whose bits are not the reference's; NaN equals NaN
  std::string first;          // the first of them, in words
};

// One entry per kernel, in a fixed order; `cases` inputs each.
std::vector<KernelCheck> check_kernels(const KernelTable& table, std::size_t cases);

}  // namespace locket::kernels
