// The sums of the hyper-connections over S residual streams of one position, and rounding to
// bfloat16. Streams [S * hidden] lie one after the other. Products and sums are not fused; a sum
// over streams runs by ascending stream. Thread-safe; every call works in the calling thread.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/rounding.h"

namespace locket::kernels {

// sums[r] = sum over i of rows[r][i] * x[i] in double: element i in lane i mod 16, the lanes added
// as a tree of halves; the caller rounds. For the few sums whose error would spread over
// everything. rows [sums.size(), x.size()].
void dots_in_double(std::span<const float> rows, std::span<const float> x, std::span<double> sums);

// out = round(sum over s of weights[s] * streams[s]). streams [S * hidden], weights [S], out
// [hidden].
void collapse_streams(std::span<const float> streams, std::span<const float> weights,
                      Rounding rounding, std::span<float> out);

struct StreamExpansion {
  std::span<const float> comb;  // [S * S]: comb[j * S + k], j old stream, k new stream
  std::span<const float> post;  // [S]
  std::span<const float> y;     // [hidden]
  Rounding rounding;
};
// streams'_k = round(post_k * y + sum over j of comb[j][k] * streams_j), in place [S * hidden].
void expand_streams(const StreamExpansion& expansion, std::span<float> streams);

struct StreamMixing {
  std::size_t streams = 0;     // S
  std::size_t iterations = 0;  // of the normalisation of comb
  float eps = 0;
  std::span<const float> scale;  // [3]: of pre, post, comb
  std::span<const float> base;   // [2S + S*S]
};
struct StreamCoefficients {
  std::span<float> pre;   // [S]
  std::span<float> post;  // [S]
  std::span<float> comb;  // [S * S]
};
// The coefficients of one position from its mixes [2S + S*S]: pre = sigmoid + eps, post = 2
// sigmoid, comb = softmax by rows + eps, then columns and rows divided by their sums in turn.
// float32; sums ascending; the softmax multiplies by the reciprocal of its sum, as the official
// code does.
void mix_coefficients(const StreamMixing& mixing, std::span<const float> mixes,
                      const StreamCoefficients& out);

// Every value becomes the nearest bfloat16 value; numerics::round_to_bf16().
void round_to_bf16(std::span<float> values);

}  // namespace locket::kernels
