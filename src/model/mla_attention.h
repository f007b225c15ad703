// Multi-head latent attention: the memory keeps one row per token for all heads, the normed latent
// and one rotated key [latent_rank + rope_dim]. Computed in absorbed form: a head's key projection
// goes into its query and its value projection is applied to the average of latents, so that a row
// is read once for all heads and serves as key and value. That equals the expanded form up to
// rounding; one form for prompts and answers keeps a position's bits independent of slices.
// DeepSeek-V2, arXiv 2405.04434, 2.1; model.py of DeepSeek-V3, MLA.
//
// u [rows, hidden] -> [rows, hidden]. Rotations take adjacent pairs, also in the stored key.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/weight_matrix.h"
#include "model/dsa_indexer.h"
#include "model/forward_context.h"
#include "model/step.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct MlaConfig {
  std::int64_t layer = 0;  // for observers
  std::size_t heads = 0;
  std::size_t nope_dim = 0;   // of a head's query, multiplies the latent
  std::size_t rope_dim = 0;   // of a head's query, multiplies the rotated key
  std::size_t value_dim = 0;  // of a head
  std::size_t latent_rank = 0;
  float norm_eps = 0;
  float softmax_scale = 0;
  std::optional<DsaIndexerConfig> indexer = {};  // none: every earlier position is read

  std::size_t query_dim() const { return nope_dim + rope_dim; }
  // Values of a token's row, and of an absorbed query.
  std::size_t row_width() const { return latent_rank + rope_dim; }
};

struct MlaWeights {
  // Queries from a normed latent of their own, or straight from the input if q_a has no rows.
  kernels::WeightMatrix q_a;                      // [q_rank, hidden]
  std::vector<float> q_norm;                      // [q_rank]
  kernels::WeightMatrix q_b;                      // [heads * query_dim, q_rank or hidden]
  kernels::WeightMatrix kv_a;                     // [latent_rank + rope_dim, hidden]
  std::vector<float> kv_norm;                     // [latent_rank]
  std::vector<kernels::WeightMatrix> absorb_key;  // per head [latent_rank, nope_dim]
  std::vector<kernels::WeightMatrix> value_up;    // per head [value_dim, latent_rank]
  kernels::WeightMatrix output;                   // [hidden, heads * value_dim]
  DsaIndexerWeights indexer;                      // if there is one
};

// Where a layer's rows lie.
struct MlaMemory {
  std::size_t rows = 0;        // stream of latents and rotated keys
  std::size_t index_keys = 0;  // stream of the indexer's keys, if there is one
};

// Writes the rows of positions from write_from on, waits for those that are on their way and reads
// all from the memory, so that computed, shared and restored rows give the same bits. Sets
// step.selection if there is an indexer. REQUIRES: step.plain_rotary is [rows, rope_dim / 2].
tensor::FloatMatrix mla_attention(ForwardContext& context, const MlaConfig& config,
                                  const MlaWeights& weights, const tensor::FloatMatrix& u,
                                  const MlaMemory& memory, Step& step);

}  // namespace locket::model
