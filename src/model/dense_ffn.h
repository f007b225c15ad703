// The dense feed-forward layer: down(silu(gate(u)) * up(u)), what every token goes through where
// there are no experts. Llama; the first layers of DeepSeek-V2 and V3.
//
// u [tokens, hidden] -> [tokens, hidden]. Thread-safe; weights must outlive the call.
#pragma once

#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct DenseFfnWeights {
  kernels::WeightMatrix gate;  // [size, hidden]
  kernels::WeightMatrix up;    // [size, hidden]
  kernels::WeightMatrix down;  // [hidden, size]
};

tensor::FloatMatrix dense_ffn(ForwardContext& context, const DenseFfnWeights& weights,
                              const tensor::FloatMatrix& u);

}  // namespace locket::model
