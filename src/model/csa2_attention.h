// CSA2 attention: low-rank queries over one shared latent per row that is key and value at once;
// every position reads its window (the newest positions of this layer) and the selected rows of the
// compressed memory, in one softmax with a learned sink per head; the output is rotated back and
// projected by groups. Report 2.2; official model.py, Attention. V4 has the same mechanism with a
// norm of every query head; what its rows are and which are read is a matter of the layer.
//
// u [positions, hidden] -> [positions, hidden].
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "model/indexer.h"
#include "model/step.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct Csa2Config {
  std::int64_t layer = 0;  // for observers
  std::size_t heads = 0;
  std::size_t head_dim = 0;
  std::size_t rope_dim = 0;
  std::size_t output_groups = 0;
  std::int64_t window = 0;
  std::int64_t ratio = 0;  // 0: window only
  float norm_eps = 0;
  // kPerHead: every head of a query is divided by its own root mean square.
  enum class QueryNorm { kNone, kPerHead } query_norm = QueryNorm::kNone;
  bool selects_rows = false;
  IndexerConfig indexer = {};  // if selects_rows
};

struct Csa2Weights {
  kernels::WeightMatrix wq_a;               // [q_lora, hidden] FP8
  std::vector<float> q_norm;                // [q_lora]
  kernels::WeightMatrix wq_b;               // [heads * head_dim, q_lora] FP8
  kernels::WeightMatrix wkv;                // [head_dim, hidden] FP8
  std::vector<float> kv_norm;               // [head_dim]
  std::vector<float> sink;                  // [heads]
  std::vector<kernels::WeightMatrix> wo_a;  // per group [o_lora, heads / groups * head_dim] FP8
  kernels::WeightMatrix wo_b;               // [hidden, groups * o_lora] FP8
  IndexerWeights indexer;                   // if selects_rows
};

// Writes this layer's window ring, reads `memory`'s rows, and sets step.selection if the layer is
// an index source.
tensor::FloatMatrix csa2_attention(ForwardContext& context, const Csa2Config& config,
                                   const Csa2Weights& weights, const tensor::FloatMatrix& u,
                                   const LayerMemory& memory, Step& step);

}  // namespace locket::model
