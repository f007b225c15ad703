// A linear layer with weights as the checkpoint stores them, and how its input is prepared: in mode
// `reference`, activations into FP8 and FP4 weights are quantized to E4M3 with one power-of-two
// scale per 32 (official kernel.py, act_quant); BF16 and F32 weights take them as they are.
#pragma once

#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "tensor/float_matrix.h"

namespace locket::model {

// x with every row quantized as the GEMMs on quantized weights want it; a copy of x in other modes.
tensor::FloatMatrix quantize_activations(const ForwardContext& context,
                                         const tensor::FloatMatrix& x);

// out [tokens, rows of w] = x . w^T in float32, not rounded.
void linear(ForwardContext& context, const kernels::WeightMatrix& w, const tensor::FloatMatrix& x,
            tensor::FloatMatrix& out);

// The same, rounded as activations are.
tensor::FloatMatrix rounded_linear(ForwardContext& context, const kernels::WeightMatrix& w,
                                   const tensor::FloatMatrix& x);

}  // namespace locket::model
