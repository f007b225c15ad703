// The indexer of an index source: scores all visible rows of its KV source with small heads and
// chooses the best for the attention of this layer and the ones that reuse it. Report 2.2.3;
// official model.py, Indexer.
//
// Row j of ratio r is visible at position p if j < (p + 1) div r. The candidate source also keeps
// the best blocks of consecutive rows (a block's score is its best row's; the block of the newest
// row is always in); later sources choose inside that pool only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/index_scores.h"
#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "model/step.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct IndexerConfig {
  std::size_t heads = 0;
  std::size_t dim = 0;
  std::size_t rope_dim = 0;
  std::size_t topk = 0;
  std::int64_t ratio = 1;
  std::size_t pool_blocks = 0;
  std::size_t pool_block_size = 1;
  enum class Pool { kNone, kBuild, kUse } pool = Pool::kNone;
  // V4: queries are mixed by a Hadamard transform before they are quantized, as the keys are.
  enum class Spread { kNone, kHadamard } spread = Spread::kNone;
};

struct IndexerWeights {
  kernels::WeightMatrix wq_b;          // [heads * dim, q_lora] FP8
  kernels::WeightMatrix weights_proj;  // [heads, hidden] BF16
};

// Inputs of one step: u [count, hidden], the attention input; query_latent [count, q_lora],
// quantized as activations are; `key_stream`: where the keys lie.
struct IndexerInput {
  const tensor::FloatMatrix& u;
  const tensor::FloatMatrix& query_latent;
  std::size_t key_stream = 0;
};

// Sets step.selection and, if the layer builds it, step.pool.
void select_rows(ForwardContext& context, const IndexerConfig& config,
                 const IndexerWeights& weights, const IndexerInput& input, Step& step);

}  // namespace locket::model
