// The weights of a V1 model under their released names.
#include <fmt/format.h>
#include <utility>

#include "model/generations/v1.h"

namespace locket::model {
namespace {

class Loader {
 public:
  Loader(const V1Config& config, WeightReader& reader) : config_(config), reader_(reader) {}

  Result<V1Weights> load() {
    const std::int64_t vocabulary = config_.vocabulary_size;
    const std::int64_t hidden = config_.hidden_size;
    V1Weights weights;
    LOCKET_TRY(weights.head.norm, reader_.values("model.norm.weight", {hidden}));
    const std::string_view head = config_.ties_embeddings ? "model.embed_tokens" : "lm_head";
    LOCKET_TRY(weights.head.head, reader_.matrix(std::string(head), vocabulary, hidden));
    if (!config_.ties_embeddings) {
      LOCKET_TRY(weights.embedding, reader_.matrix("model.embed_tokens", vocabulary, hidden));
    }
    for (std::int64_t layer = 0; layer < config_.layer_count; ++layer) {
      LOCKET_TRY(V1LayerWeights loaded, load_layer(fmt::format("model.layers.{}.", layer)));
      weights.layers.push_back(std::move(loaded));
    }
    LOCKET_TRY_STATUS(reader_.checkpoint().check_all_claimed());
    return weights;
  }

 private:
  Result<V1LayerWeights> load_layer(const std::string& prefix) {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t size = config_.ffn_size;
    V1LayerWeights weights;
    LOCKET_TRY(weights.attention_norm, reader_.values(prefix + "input_layernorm.weight", {hidden}));
    LOCKET_TRY(weights.ffn_norm,
               reader_.values(prefix + "post_attention_layernorm.weight", {hidden}));
    LOCKET_TRY(weights.attention, load_attention(prefix + "self_attn."));
    LOCKET_TRY(weights.ffn.gate, reader_.matrix(prefix + "mlp.gate_proj", size, hidden));
    LOCKET_TRY(weights.ffn.up, reader_.matrix(prefix + "mlp.up_proj", size, hidden));
    LOCKET_TRY(weights.ffn.down, reader_.matrix(prefix + "mlp.down_proj", hidden, size));
    return weights;
  }

  Result<DenseAttentionWeights> load_attention(const std::string& prefix) {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t query = config_.head_count * config_.head_dim;
    const std::int64_t rows = config_.kv_head_count * config_.head_dim;
    DenseAttentionWeights weights;
    LOCKET_TRY(weights.query, reader_.matrix(prefix + "q_proj", query, hidden));
    LOCKET_TRY(weights.key, reader_.matrix(prefix + "k_proj", rows, hidden));
    LOCKET_TRY(weights.value, reader_.matrix(prefix + "v_proj", rows, hidden));
    LOCKET_TRY(weights.output, reader_.matrix(prefix + "o_proj", hidden, query));
    return weights;
  }

  const V1Config& config_;
  WeightReader& reader_;
};

}  // namespace

Result<V1Weights> load_v1_weights(const V1Config& config, WeightReader& reader) {
  return Loader(config, reader).load();
}

}  // namespace locket::model
