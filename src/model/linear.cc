#include "model/linear.h"

#include "base/check.h"
#include "kernels/matmul.h"
#include "kernels/quantize.h"

namespace locket::model {

tensor::FloatMatrix quantize_activations(const ForwardContext& context,
                                         const tensor::FloatMatrix& x) {
  tensor::FloatMatrix quantized = x;
  if (context.numerics.quantizes_activations()) kernels::fake_quantize_fp8(quantized.values());
  return quantized;
}

void linear(ForwardContext& context, const kernels::WeightMatrix& w, const tensor::FloatMatrix& x,
            tensor::FloatMatrix& out) {
  LOCKET_CHECK(x.columns() == w.columns && out.rows() == x.rows() && out.columns() == w.rows);
  const kernels::ActivationRows rows = {.data = x.values().data(),
                                        .stride = x.columns(),
                                        .tokens = x.rows(),
                                        .values = context.numerics.activation_values()};
  kernels::matmul(w, rows, out.values().data(), out.columns(), context.workers);
  context.work.matmul += x.rows() * w.rows * w.columns;
}

tensor::FloatMatrix rounded_linear(ForwardContext& context, const kernels::WeightMatrix& w,
                                   const tensor::FloatMatrix& x) {
  tensor::FloatMatrix out(x.rows(), w.rows);
  linear(context, w, x, out);
  kernels::round_values(out.values(), context.numerics.rounding());
  return out;
}

}  // namespace locket::model
