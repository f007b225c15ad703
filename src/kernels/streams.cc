#include "kernels/streams.h"

#include "kernels/kernel_table.h"

namespace locket::kernels {

void dots_in_double(std::span<const float> rows, std::span<const float> x, std::span<double> sums) {
  active_kernels().streams.dots_in_double(rows, x, sums);
}

void collapse_streams(std::span<const float> streams, std::span<const float> weights,
                      Rounding rounding, std::span<float> out) {
  active_kernels().streams.collapse(streams, weights, rounding, out);
}

void expand_streams(const StreamExpansion& expansion, std::span<float> streams) {
  active_kernels().streams.expand(expansion, streams);
}

void mix_coefficients(const StreamMixing& mixing, std::span<const float> mixes,
                      const StreamCoefficients& out) {
  active_kernels().streams.mix_coefficients(mixing, mixes, out);
}

void round_to_bf16(std::span<float> values) { active_kernels().streams.round_to_bf16(values); }

}  // namespace locket::kernels
