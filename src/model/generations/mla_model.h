// A model with latent attention: pre-norm layers of attention and a feed-forward part, dense in the
// first layers, a mixture of experts behind them. Every layer reads the rows of all positions, or
// of those that its indexer chose; there are no windows, and a prompt runs through all layers. V2,
// V3 and V3.2 are such models; their configs say what differs. DeepSeek-V2, arXiv 2405.04434;
// DeepSeek-V3, arXiv 2412.19437; DeepSeek-V3.2-Exp.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "model/generations/generation.h"
#include "model/generations/mla_config.h"
#include "model/generations/mla_weights.h"
#include "model/language_model.h"

namespace locket::model {

inline constexpr std::array kMlaModes = {NumericsMode::kWide, NumericsMode::kPlain};

ModelOutline outline_mla(const MlaModelConfig& config, NumericsMode mode);

// Generation::check().
[[nodiscard]] Result<std::string> check_mla_weights(const MlaModelConfig& config,
                                                    checkpoint::Checkpoint& checkpoint);

class MlaModel final : public LanguageModel {
 public:
  [[nodiscard]] static Result<std::unique_ptr<LanguageModel>> load(
      const MlaModelConfig& config, checkpoint::Checkpoint& checkpoint, const LoadOptions& options);

  const ModelOutline& outline() const override { return outline_; }
  const Numerics& numerics() const override { return numerics_; }
  const std::string& skipped_tensors() const override { return skipped_tensors_; }

  SequenceState make_state() const override { return {}; }
  Step make_step(std::vector<StepPart> parts) const override;
  ResidualRows encode(ForwardContext& context, Step& step,
                      std::span<SequenceState* const> states) const override;
  // All layers belong to encode().
  void decode(ForwardContext& context, Step& step, ResidualRows& rows) const override;
  tensor::FloatMatrix logits(ForwardContext& context, const ResidualRows& rows) const override;

 private:
  MlaModel(const MlaModelConfig& config, const Numerics& numerics, LoadedMlaWeights loaded);

  void run_layer(ForwardContext& context, std::int64_t layer, Step& step,
                 tensor::FloatMatrix& residual) const;
  tensor::FloatMatrix run_ffn(ForwardContext& context, std::int64_t layer, Step& step,
                              const tensor::FloatMatrix& u) const;
  MlaMemory memory_of(std::int64_t layer) const;

  MlaModelConfig config_;
  Numerics numerics_;
  ModelOutline outline_;
  MlaModelWeights weights_;
  std::string skipped_tensors_;
  std::vector<float> frequencies_;  // [rope_dim / 2]
};

}  // namespace locket::model
