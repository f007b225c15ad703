// DeepSeek-V4.1: a causal encoder-decoder. Layers below `boundary` are the encoder, the others the
// decoder; the memory that grows with the text is written by the encoder and by the row writers of
// the boundary layer, from the encoder's output. Tech report arXiv 2609.19969; official model.py.
//
//   encode()  tokens -> encoder layers, all rows and index keys, encoder rings
//   decode()  the encoder's output of a run of positions -> decoder layers, decoder rings
//   logits()  collapse, norm and head of chosen positions
//
// A prompt needs encode() for every token and decode() for its last ones only; a generated token
// needs both. What a position gives does not depend on how positions are grouped into calls.
//
// The model is immutable after load and may be shared by threads; one sequence may be in one call
// at a time. The checkpoint must outlive it (large Engram tables are read from there).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cache/kv_layout.h"
#include "cache/kv_view.h"
#include "checkpoint/checkpoint.h"
#include "model/engram_hash.h"
#include "model/forward_context.h"
#include "model/generations/v41_config.h"
#include "model/generations/v41_layout.h"
#include "model/generations/v41_weights.h"

namespace locket::model {

// The residual streams of consecutive positions and the collapse weights for the next site.
struct ResidualRows {
  std::int64_t first_position = 0;
  tensor::FloatMatrix streams;  // [count, S * hidden]
  tensor::FloatMatrix pre;      // [count, S]

  std::size_t count() const { return streams.rows(); }
};

// What a sequence carries besides its memory: groups of tokens that no row holds yet. Empty at
// every multiple of the layout's largest tokens_per_row.
struct V41SequenceState {
  std::vector<PendingGroup> pending;  // per layer; used by KV sources with a ratio above 1
};

// Positions of one call: `tokens` are all ids of the sequence up to the last one of the call.
struct TokenSlice {
  std::span<const std::int32_t> tokens;
  std::int64_t first_position = 0;
  // Encoder windows do not reach below this position: where a run began without rings.
  std::int64_t window_start = 0;
  // Rows of positions below are in the memory already: they are read from there, never written.
  // REQUIRES: a multiple of the layout's largest tokens_per_row.
  std::int64_t write_from = 0;

  std::size_t count() const { return tokens.size() - static_cast<std::size_t>(first_position); }
};

class V41Model {
 public:
  // `token_map`: Engram class of every token id (empty if the model has no Engram).
  [[nodiscard]] static Result<V41Model> load(checkpoint::Checkpoint& checkpoint,
                                             std::vector<std::int32_t> token_map,
                                             const Numerics& numerics,
                                             const LoadProgress& progress);

  const V41Config& config() const { return config_; }
  const Numerics& numerics() const { return numerics_; }
  const V41Memory& memory() const { return memory_; }
  // One line about tensors that were recognised and not loaded; may be empty.
  const std::string& skipped_tensors() const { return skipped_tensors_; }

  ForwardContext make_context(WorkerPool& workers) const {
    return {.workers = workers, .numerics = numerics_};
  }
  V41SequenceState make_state() const {
    return {.pending = std::vector<PendingGroup>(config_.layers.size())};
  }

  // REQUIRES: ids in the vocabulary; `memory` has room for tokens.size() tokens and holds what
  // earlier calls wrote for positions below first_position. kIo if Engram rows cannot be read.
  [[nodiscard]] Result<ResidualRows> encode(ForwardContext& context, const cache::KvView& memory,
                                            V41SequenceState& state, const TokenSlice& slice) const;

  // Runs the decoder on `rows`, as encode() gave them; windows do not reach below `segment_start`.
  // `tokens` as in TokenSlice.
  [[nodiscard]] Status decode(ForwardContext& context, const cache::KvView& memory,
                              std::span<const std::int32_t> tokens, std::int64_t segment_start,
                              ResidualRows& rows) const;

  // Logits [count - first, vocabulary] of the rows from `first` on, after decode().
  tensor::FloatMatrix logits(ForwardContext& context, const ResidualRows& rows,
                             std::size_t first) const;

  // One layer alone on given inputs: for comparison with recorded ones. `step` holds the memory
  // and, for layers that reuse them, selection and pool.
  [[nodiscard]] Status run_layer(ForwardContext& context, std::int64_t layer,
                                 std::span<const std::int32_t> tokens, V41SequenceState& state,
                                 Step& step, ResidualRows& rows) const;

  // Positions with their rotations, for one call.
  Step make_step(const cache::KvView& memory, std::int64_t first_position, std::size_t count,
                 std::int64_t segment_start) const;

 private:
  V41Model(V41Config config, const Numerics& numerics);

  const LayerRole& role(std::int64_t layer) const {
    return config_.layers[static_cast<std::size_t>(layer)];
  }

  [[nodiscard]] Status add_engram(ForwardContext& context, std::int64_t layer,
                                  std::span<const std::int32_t> tokens, ResidualRows& rows) const;
  // Collapse with `pre` and norm: the input of a site.
  tensor::FloatMatrix site_input(const ForwardContext& context, const std::vector<float>& norm,
                                 const ResidualRows& rows) const;
  void write_memory(ForwardContext& context, std::int64_t layer, const tensor::FloatMatrix& u,
                    V41SequenceState& state, const Step& step) const;
  [[nodiscard]] Status wait_for_rows(std::int64_t layer, const Step& step) const;
  void attention_site(ForwardContext& context, std::int64_t layer, const tensor::FloatMatrix& u,
                      Step& step, ResidualRows& rows) const;
  void ffn_site(ForwardContext& context, std::int64_t layer, ResidualRows& rows) const;

  V41Config config_;
  Numerics numerics_;
  V41Memory memory_;
  V41Weights weights_;
  std::vector<EngramHash> engram_hash_;  // one, or none if the model has no Engram
  std::vector<float> plain_frequencies_;
  std::vector<float> compressed_frequencies_;
  std::string skipped_tensors_;
};

}  // namespace locket::model
