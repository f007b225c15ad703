// DeepSeek-V4.1: a causal encoder-decoder. Layers below `boundary` are the encoder, the others the
// decoder; the memory that grows with the text is written by the encoder and by the row writers of
// the boundary layer, from the encoder's output. Tech report arXiv 2609.19969; official model.py.
//
//   encode()  tokens -> encoder layers, all rows and index keys, encoder rings
//   decode()  the encoder's output of a run of positions -> decoder layers, decoder rings
//   logits()  collapse, norm and head of chosen positions
//
// A prompt needs encode() for every token and decode() for its last ones only; a generated token
// needs both. What a position gives does not depend on how positions are grouped into calls, nor on
// the other sequences of a call.
//
// The model is immutable after load and may be shared by threads; one sequence may be in one call
// at a time. The checkpoint must outlive it (large Engram tables are read from there).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/task_pool.h"
#include "checkpoint/checkpoint.h"
#include "model/engram_hash.h"
#include "model/forward_context.h"
#include "model/generations/v41_config.h"
#include "model/generations/v41_layout.h"
#include "model/generations/v41_weights.h"
#include "model/language_model.h"

namespace locket::model {

class V41Model final : public LanguageModel {
 public:
  // `token_map`: Engram class of every token id (empty if the model has no Engram).
  [[nodiscard]] static Result<V41Model> load(checkpoint::Checkpoint& checkpoint,
                                             std::vector<std::int32_t> token_map,
                                             const Numerics& numerics, const LoadProgress& progress,
                                             const ExpertPlacement& placement = {});

  const V41Config& config() const { return config_; }
  const V41Memory& memory() const { return memory_; }
  const ModelOutline& outline() const override { return outline_; }
  const Numerics& numerics() const override { return numerics_; }
  StreamedExperts* streamed_experts() const override { return weights_.streamed; }
  // The routed experts of all layers. One caller at a time.
  ExpertSource& experts() const { return *weights_.experts; }
  const std::string& skipped_tensors() const override { return skipped_tensors_; }

  // Pending groups: per layer; used by KV sources with a ratio above 1.
  SequenceState make_state() const override {
    return {.pending = std::vector<PendingGroup>(config_.layers.size())};
  }

  // Rotations of the parts, for encode(), decode() or run_layer().
  Step make_step(std::vector<StepPart> parts) const override;
  ResidualRows encode(ForwardContext& context, Step& step,
                      std::span<SequenceState* const> states) const override;
  void decode(ForwardContext& context, Step& step, ResidualRows& rows) const override;
  tensor::FloatMatrix logits(ForwardContext& context, const ResidualRows& rows) const override;
  std::vector<LargestLogit> largest_logits(ForwardContext& context,
                                           const ResidualRows& rows) const override;
  void make_head_copy(WorkerPool& workers) override;

  // One layer alone on given inputs: for comparison with recorded ones. `step` holds, for layers
  // that reuse them, selection and pool.
  void run_layer(ForwardContext& context, std::int64_t layer, Step& step,
                 std::span<SequenceState* const> states, ResidualRows& rows) const;

 private:
  V41Model(V41Config config, const Numerics& numerics);

  const LayerRole& role(std::int64_t layer) const {
    return config_.layers[static_cast<std::size_t>(layer)];
  }

  void open_row_readers();
  // Engram rows of layers `first` to `last`, into the step.
  void read_engram_ahead(ForwardContext& context, std::int64_t first, std::int64_t last,
                         Step& step) const;
  void add_engram(ForwardContext& context, std::int64_t layer, Step& step,
                  ResidualRows& rows) const;
  // Collapse with `pre` and norm: the input of a site.
  tensor::FloatMatrix site_input(const ForwardContext& context, const std::vector<float>& norm,
                                 const ResidualRows& rows) const;
  void write_memory(ForwardContext& context, std::int64_t layer, const tensor::FloatMatrix& u,
                    std::span<SequenceState* const> states, const Step& step) const;
  ExpertSource& experts_of(const ForwardContext& context) const;
  void expect_experts(const ForwardContext& context, std::int64_t layer,
                      const ResidualRows& rows) const;
  void attention_site(ForwardContext& context, std::int64_t layer, const tensor::FloatMatrix& u,
                      Step& step, ResidualRows& rows) const;
  void ffn_site(ForwardContext& context, std::int64_t layer, Step& step, ResidualRows& rows) const;

  V41Config config_;
  Numerics numerics_;
  V41Memory memory_;
  ModelOutline outline_;
  V41Weights weights_;
  std::vector<EngramHash> engram_hash_;    // one, or none if the model has no Engram
  std::unique_ptr<TaskPool> row_readers_;  // null: all Engram tables are in memory
  std::vector<float> plain_frequencies_;
  std::vector<float> compressed_frequencies_;
  std::string skipped_tensors_;
};

}  // namespace locket::model
