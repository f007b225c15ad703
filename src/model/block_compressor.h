// Compressed rows of blocks of tokens: per channel, a softmax over the gates of the tokens weighs
// their values; the mix is normed, rotated at the position of the block's first token and stored as
// a row (DeepSeek-V4, compressor of HCA and CSA; V4.1's rows without a block's neighbour are made
// in compressor.h).
//
// A token's gate has a learned part for its place in the block (ape). Blocks may overlap: a token
// then has two halves [a | b], and a row mixes the a-halves of the block before with the b-halves
// of its own; before the first block there is nothing. So that a sequence can go on from any page
// boundary, the a-halves of the newest block that is complete lie in a ring of the memory; tokens
// of the open block wait in a PendingGroup. All float32.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/kv_view.h"
#include "kernels/row_codec.h"
#include "kernels/weight_matrix.h"
#include "model/compressor.h"
#include "model/forward_context.h"
#include "model/step.h"
#include "tensor/float_matrix.h"

namespace locket::model {

struct BlockCompressorConfig {
  std::int64_t layer = 0;  // for observers
  std::size_t tokens = 0;  // of a block
  std::size_t width = 0;   // of a row
  std::size_t rope_dim = 0;
  float norm_eps = 0;
  enum class Overlap { kNone, kBlockBefore } overlap = Overlap::kNone;
  // What becomes of a row behind its rotation. Index keys are mixed by a Hadamard transform before
  // they are quantized, as their queries are.
  enum class Spread { kNone, kHadamard } spread = Spread::kNone;

  // Values of a token, and its gates: one half or two.
  std::size_t token_width() const { return overlap == Overlap::kNone ? width : 2 * width; }
};

struct BlockCompressorWeights {
  kernels::WeightMatrix wkv;    // [token_width, hidden] BF16
  kernels::WeightMatrix wgate;  // [token_width, hidden] BF16
  std::vector<float> ape;       // [tokens, token_width]
  std::vector<float> norm;      // [width]
};

// Where rows go and where the a-halves lie.
struct BlockPlace {
  std::size_t stream = 0;
  kernels::RowFormat format = kernels::RowFormat::kF32;
  // Of the ring with one slot per token of a block, where blocks overlap: floats
  // [values of the a-half | gates of the a-half] from `ring_offset` bytes into a slot on.
  std::size_t ring = 0;
  std::size_t ring_offset = 0;
};

// Bytes of a ring's slot that a compressor with overlap takes.
std::size_t block_ring_bytes(const BlockCompressorConfig& config);

// What compress_blocks() works on, beside the weights.
struct BlockInput {
  const tensor::FloatMatrix& u;            // [step.rows(), hidden], the attention input
  std::span<PendingGroup* const> pending;  // [parts], the open block of each
  const std::vector<float>& frequencies;   // [rope_dim / 2]
  const Step& step;
};

// Forms and stores the rows of all parts of the step that have not failed. Rows below a part's
// write_from are in the memory already; of their tokens only those are looked at that a later row
// mixes in. REQUIRES: write_from is a multiple of `tokens`; calls of a sequence follow one another.
void compress_blocks(ForwardContext& context, const BlockCompressorConfig& config,
                     const BlockCompressorWeights& weights, const BlockPlace& place,
                     const BlockInput& input);

}  // namespace locket::model
