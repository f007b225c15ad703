#include "kernels/cpu/amx.h"

#include <cpuid.h>

#include "base/tile_permission.h"

namespace locket::kernels::cpu {
namespace {

// Leaf 7 of cpuid, in EDX: bfloat16 products, tiles, int8 products. Compilers of 2022 have no names
// for them.
bool has_tiles() {
  constexpr unsigned kLeaf = 7;
  constexpr unsigned kNeeded = 1U << 22 | 1U << 24 | 1U << 25;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  if (__get_cpuid_count(kLeaf, 0, &eax, &ebx, &ecx, &edx) == 0) return false;
  return (edx & kNeeded) == kNeeded;
}

}  // namespace

bool amx_is_usable() {
  static const bool kUsable = has_tiles() && ask_for_tile_registers();
  return kUsable;
}

}  // namespace locket::kernels::cpu
