#include "model/dense_ffn.h"

#include <limits>

#include "kernels/swiglu.h"
#include "model/linear.h"
#include "model/row_work.h"

namespace locket::model {
namespace {

// About how many multiply-adds a gated value is worth: its exponential.
constexpr std::size_t kWorkPerGatedValue = 16;

}  // namespace

tensor::FloatMatrix dense_ffn(ForwardContext& context, const DenseFfnWeights& weights,
                              const tensor::FloatMatrix& u) {
  constexpr float kNoLimit = std::numeric_limits<float>::infinity();
  const tensor::FloatMatrix input = quantize_activations(context, u);
  tensor::FloatMatrix gated = rounded_linear(context, weights.gate, input);
  const tensor::FloatMatrix up = rounded_linear(context, weights.up, input);
  for_each_row(context, gated.rows(), gated.columns() * kWorkPerGatedValue, [&](std::size_t i) {
    kernels::swiglu(gated.row(i), up.row(i), kNoLimit, 1.0f, context.numerics.rounding(),
                    gated.row(i));
  });
  return rounded_linear(context, weights.down, quantize_activations(context, gated));
}

}  // namespace locket::model
