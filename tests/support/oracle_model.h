// The small checkpoints of tests/data/checkpoints as models for comparison with recorded vectors:
// the whole model, and its weights apart for mechanisms alone. In mode `reference` index scores are
// rounded to bfloat16, as the official code has them. Loaded once per test program. What cannot be
// loaded throws std::runtime_error. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/worker_pool.h"
#include "cache/page_pool.h"
#include "checkpoint/checkpoint.h"
#include "model/engram_hash.h"
#include "model/generations/v41.h"
#include "model/generations/v41_mechanisms.h"
#include "model/generations/v41_weights.h"
#include "tensor/float_matrix.h"

namespace locket::test_support {

class OracleModel {
 public:
  static OracleModel& get(std::string_view shape, model::NumericsMode mode);

  const model::V41Model& model() const { return *model_; }
  const model::V41Config& config() const { return model_->config(); }
  const model::LayerRole& role(std::int64_t layer) const {
    return config().layers[static_cast<std::size_t>(layer)];
  }
  // The same weights as model() has, read a second time.
  const model::V41Weights& weights() const { return weights_; }
  const model::V41LayerWeights& layer_weights(std::int64_t layer) const {
    return weights_.layers[static_cast<std::size_t>(layer)];
  }
  // REQUIRES: the model has Engram layers.
  const model::EngramHash& engram_hash() const { return hash_.front(); }

  cache::PagePool& pool() { return *pool_; }
  WorkerPool& workers() { return *workers_; }
  model::ForwardContext context() { return model_->make_context(*workers_); }

  // Logits [prompt + appended, vocabulary]: the prompt in one call, the others one at a time, all
  // layers over all positions.
  tensor::FloatMatrix session_logits(std::span<const std::int32_t> prompt,
                                     std::span<const std::int32_t> appended);

 private:
  OracleModel(std::string_view shape, model::NumericsMode mode);

  std::unique_ptr<checkpoint::Checkpoint> checkpoint_;
  std::unique_ptr<checkpoint::Checkpoint> second_checkpoint_;
  std::unique_ptr<model::V41Model> model_;
  model::V41Weights weights_;
  std::vector<model::EngramHash> hash_;  // one, or none without Engram layers
  std::unique_ptr<WorkerPool> workers_;
  std::unique_ptr<cache::PagePool> pool_;
};

// What mechanisms report, by name ("attention", "experts", ...); several calls are joined. Layers
// are not told apart.
class Capture : public model::ForwardObserver {
 public:
  void on_floats(const Place& place, std::span<const float> values) override;
  void on_integers(const Place& place, std::span<const std::int32_t> values) override;

  // Empty if nothing was reported.
  std::span<const float> floats(std::string_view name) const;
  std::span<const std::int32_t> integers(std::string_view name) const;

 private:
  std::map<std::string, std::vector<float>, std::less<>> floats_;
  std::map<std::string, std::vector<std::int32_t>, std::less<>> integers_;
};

}  // namespace locket::test_support
