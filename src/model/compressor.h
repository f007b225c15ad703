// The compressor of a KV source: `ratio` tokens become one latent, which is kept twice: as a row of
// the memory (rotated, FP4) and as an index key (projected, normed, rotated, FP4). Report 2.2.2;
// official model.py, Compressor and Indexer.
//
// ratio 1: latent = norm(wkv . u). ratio r > 1: per channel, a softmax over the gates of the r
// tokens weighs their values; an unfinished group waits in float32. Row j is rotated at position j
// * ratio.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "model/step.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct CompressorConfig {
  std::size_t ratio = 1;
  std::size_t head_dim = 0;
  std::size_t index_dim = 0;
  std::size_t rope_dim = 0;
  float norm_eps = 0;
};

struct CompressorWeights {
  kernels::WeightMatrix wkv;        // [head_dim, hidden] BF16
  kernels::WeightMatrix wgate;      // [head_dim, hidden] BF16; ratio > 1 only
  std::vector<float> norm;          // [head_dim]
  kernels::WeightMatrix index_wk;   // [index_dim, head_dim] BF16
  std::vector<float> index_k_norm;  // [index_dim]
};

// Tokens of a group that is not complete yet; always fewer than `ratio`.
struct PendingGroup {
  std::vector<float> values;  // [tokens, head_dim]
  std::vector<float> gates;   // [tokens, head_dim]

  std::size_t tokens(std::size_t head_dim) const { return values.size() / head_dim; }
};

// One sequence's share of compress(): its next `count` rows of u.
// REQUIRES: `pending` holds the first_position mod ratio tokens before them.
struct CompressorRun {
  PendingGroup* pending = nullptr;
  std::size_t count = 0;
};

// Latents [groups, head_dim] that the rows of `u` [rows, hidden], the attention input, complete:
// those of the first run, then those of the next. A run's first one has row number (its first
// position) / ratio.
tensor::FloatMatrix compress(ForwardContext& context, const CompressorConfig& config,
                             const CompressorWeights& weights, const tensor::FloatMatrix& u,
                             std::span<const CompressorRun> runs);

// Where latents are written as rows and index keys: runs of them, in order.
struct RowWriter {
  struct Target {
    const cache::KvView* memory = nullptr;
    std::int64_t first_row = 0;
    std::size_t count = 0;
  };
  std::vector<Target> targets;
  LayerMemory streams;
  MemoryFormats formats;
  const std::vector<float>& frequencies;
};
void write_rows(ForwardContext& context, const CompressorConfig& config,
                const CompressorWeights& weights, const tensor::FloatMatrix& latents,
                const RowWriter& writer);

}  // namespace locket::model
