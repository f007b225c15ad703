// The loop that other engines use for 4-bit experts, as a measure beside ours: the checkpoint's
// own rows, 32 codes at a time looked up by pshufb, multiplied with int8 activations by maddubs,
// one float32 step per 32 columns and a sum over lanes at the end of a row. Its results are those
// of int8 activations, not ours; only its time is compared. Needs AVX2 with FMA. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace locket::bench {

// One row of activations: per 32 columns first the even, then the odd ones, and a scale.
struct PeerRow {
  std::vector<std::int8_t> codes;
  std::vector<float> scales;  // already halved: the table holds twice the values
};

PeerRow peer_row(std::span<const float> x);

// out[r] for the rows of row-major FP4 codes [rows, columns / 2] and E8M0 scales
// [rows, columns / 32]. REQUIRES: AVX2 and FMA; columns of x are a multiple of 64.
void peer_product(const std::byte* codes, const std::byte* scales, const PeerRow& x,
                  std::span<float> out);

}  // namespace locket::bench
