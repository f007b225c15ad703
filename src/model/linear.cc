#include "model/linear.h"

#include "base/check.h"
#include "kernels/matmul.h"
#include "kernels/quantize.h"
#include "kernels/streams.h"
#include "model/row_work.h"

namespace locket::model {

tensor::FloatMatrix quantize_activations(const ForwardContext& context,
                                         const tensor::FloatMatrix& x) {
  tensor::FloatMatrix quantized = x;
  if (!context.numerics.quantizes_activations()) return quantized;
  for_each_row(context, x.rows(), x.columns() * kWorkPerNormedValue,
               [&](std::size_t row) { kernels::fake_quantize_fp8(quantized.row(row)); });
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
  if (context.numerics.rounding() == kernels::Rounding::kBf16) kernels::round_to_bf16(out.values());
  return out;
}

}  // namespace locket::model
