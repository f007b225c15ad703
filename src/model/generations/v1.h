// DeepSeek LLM (V1): the plain Llama architecture. Every layer reads and writes keys and values of
// all positions; there are no windows, and a prompt runs through all layers. The memory is one row
// stream a layer: bfloat16 in mode `wide`, as V1 is served, float32 in `plain`.
// DeepSeek LLM, arXiv 2401.02954; Hugging Face `llama`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "model/dense_attention.h"
#include "model/dense_ffn.h"
#include "model/embedding.h"
#include "model/generations/generation.h"
#include "model/generations/v1_config.h"
#include "model/language_model.h"

namespace locket::model {

struct V1LayerWeights {
  std::vector<float> attention_norm;  // [hidden]
  std::vector<float> ffn_norm;        // [hidden]
  DenseAttentionWeights attention;
  DenseFfnWeights ffn;
};

struct V1Weights {
  // [vocabulary, hidden]; empty where the head is the embedding.
  kernels::WeightMatrix embedding;
  std::vector<V1LayerWeights> layers;
  OutputHeadWeights head;

  const kernels::WeightMatrix& embeddings() const {
    return embedding.rows > 0 ? embedding : head.head;
  }
};

// kBadCheckpoint names the tensor, the file, what was found and what is wanted, also for tensors
// that have no place in the model.
[[nodiscard]] Result<V1Weights> load_v1_weights(const V1Config& config, WeightReader& reader);

ModelOutline outline_v1(const V1Config& config, NumericsMode mode);

class V1Model final : public LanguageModel {
 public:
  [[nodiscard]] static Result<V1Model> load(checkpoint::Checkpoint& checkpoint,
                                            const LoadOptions& options);

  const V1Config& config() const { return config_; }
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
  V1Model(const V1Config& config, const Numerics& numerics);

  void run_layer(ForwardContext& context, std::int64_t layer, Step& step,
                 tensor::FloatMatrix& residual) const;

  V1Config config_;
  Numerics numerics_;
  ModelOutline outline_;
  V1Weights weights_;
  std::vector<float> frequencies_;  // [head_dim / 2]
  std::string skipped_tensors_;     // none
};

}  // namespace locket::model
