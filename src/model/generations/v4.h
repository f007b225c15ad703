// DeepSeek-V4 (V4-Flash, V4-Pro): every token runs through every layer; a position attends its
// window and compressed rows of what lies before, written by the layer itself. Paper arXiv
// 2606.19348; released reference code.
//
//   encode()  tokens -> all layers, all rows, index keys and rings
//   decode()  nothing
//   logits()  collapse, norm and head of chosen positions
//
// The model is immutable after load and may be shared by threads; one sequence may be in one call
// at a time. The checkpoint must outlive it where experts stay on disk.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "model/generations/v4_config.h"
#include "model/generations/v4_layout.h"
#include "model/generations/v4_weights.h"
#include "model/language_model.h"

namespace locket::model {

struct V4LoadOptions {
  Numerics numerics = {.mode = NumericsMode::kWide};
  LoadProgress progress = {};  // may be empty
  ExpertPlacement placement = {};
  V4RowTail row_tail = V4RowTail::kBf16;
};

class V4Model final : public LanguageModel {
 public:
  [[nodiscard]] static Result<V4Model> load(checkpoint::Checkpoint& checkpoint,
                                            const V4LoadOptions& options);

  const V4Config& config() const { return config_; }
  const V4Memory& memory() const { return memory_; }
  const ModelOutline& outline() const override { return memory_.outline; }
  const Numerics& numerics() const override { return numerics_; }
  StreamedExperts* streamed_experts() const override { return weights_.streamed; }
  const std::string& skipped_tensors() const override { return skipped_tensors_; }

  // Pending groups: of layer L, those of its rows at 2 L and of its index keys at 2 L + 1.
  SequenceState make_state() const override {
    return {.pending = std::vector<PendingGroup>(2 * config_.layers.size())};
  }

  Step make_step(std::vector<StepPart> parts) const override;
  ResidualRows encode(ForwardContext& context, Step& step,
                      std::span<SequenceState* const> states) const override;
  void decode(ForwardContext& context, Step& step, ResidualRows& rows) const override;
  tensor::FloatMatrix logits(ForwardContext& context, const ResidualRows& rows) const override;

 private:
  V4Model(V4Config config, const V4LoadOptions& options);

  // Ids of the rows of a step.
  using Ids = std::span<const std::int32_t>;

  HyperConnectionsConfig site_config() const;
  Csa2Config attention_config(std::int64_t layer) const;
  // Collapse and norm: the input of a site.
  tensor::FloatMatrix site_input(const ForwardContext& context, const std::vector<float>& norm,
                                 const HyperConnections& site,
                                 const tensor::FloatMatrix& streams) const;
  void write_memory(ForwardContext& context, std::int64_t layer, const tensor::FloatMatrix& u,
                    std::span<SequenceState* const> states, Step& step) const;
  void attention_site(ForwardContext& context, std::int64_t layer,
                      std::span<SequenceState* const> states, Step& step,
                      tensor::FloatMatrix& streams) const;
  Result<tensor::FloatMatrix> run_moe(ForwardContext& context, std::int64_t layer, Ids ids,
                                      const tensor::FloatMatrix& u,
                                      std::int64_t first_position) const;
  void ffn_site(ForwardContext& context, std::int64_t layer, Ids ids, Step& step,
                tensor::FloatMatrix& streams) const;

  V4Config config_;
  Numerics numerics_;
  V4Memory memory_;
  V4Weights weights_;
  std::vector<float> plain_frequencies_;
  std::vector<float> compressed_frequencies_;
  std::string skipped_tensors_;
};

}  // namespace locket::model
