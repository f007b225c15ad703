// A linear layer with weights as the checkpoint stores them, and how its input is prepared: in mode
// `reference`, activations are quantized to E4M3 with one power-of-two scale per 32 where the
// official code has FP8 or FP4 weights (kernel.py, act_quant); the place decides, not how a file
// stores them.
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
