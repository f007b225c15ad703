// The rearranging of FP4 values into tiles, as weight_matrix.h has them: what an expert costs that
// comes from disk, besides the disk. Every x86-64 processor has what it needs.
#pragma once

#include <cstddef>
#include <span>

namespace locket::kernels::cpu {

// 16 rows of codes, row-major, into the tiles of their row group, past the caches: nobody reads
// them soon, and whoever packs has other rows to pack. Other threads may read them when this has
// returned. `values`: 16 rows of a multiple of 16 bytes. REQUIRES: `tiles` is aligned to 16 bytes.
void pack_fp4_group(std::span<const std::byte> values, std::byte* tiles);

}  // namespace locket::kernels::cpu
