#include "tests/support/oracle_model.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine/session.h"
#include "model/rotary_table.h"
#include "tests/support/oracle_data.h"
#include "tokenizer/engram_token_map.h"
#include "tokenizer/tokenizer.h"

namespace locket::test_support {
namespace {

constexpr std::uint64_t kPoolBytes = std::uint64_t{256} << 20;

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

void require_success(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

}  // namespace

OracleModel& OracleModel::get(std::string_view shape, model::NumericsMode mode) {
  using Key = std::pair<std::string, model::NumericsMode>;
  static std::map<Key, std::unique_ptr<OracleModel>> models;
  std::unique_ptr<OracleModel>& entry = models[{std::string(shape), mode}];
  if (entry == nullptr) entry.reset(new OracleModel(shape, mode));
  return *entry;
}

OracleModel::OracleModel(std::string_view shape, model::NumericsMode mode) {
  const std::filesystem::path folder = oracle_checkpoint(shape);
  const auto tokenizer = value_of(tokenizer::Tokenizer::load(folder / "tokenizer.json"));
  const auto token_map = value_of(tokenizer::make_engram_token_map(tokenizer));
  const model::Numerics numerics = {.mode = mode,
                                    .index_scores = mode == model::NumericsMode::kReference
                                                        ? kernels::IndexScoreRounding::kBf16
                                                        : kernels::IndexScoreRounding::kF32};
  using checkpoint::Checkpoint;
  checkpoint_ = std::make_unique<Checkpoint>(value_of(Checkpoint::open(folder)));
  model_ = std::make_unique<model::V41Model>(
      value_of(model::V41Model::load(*checkpoint_, token_map, numerics, {})));
  second_checkpoint_ = std::make_unique<Checkpoint>(value_of(Checkpoint::open(folder)));
  model::WeightReader reader(*second_checkpoint_, {});
  weights_ = value_of(model::load_v41_weights(config(), reader)).weights;
  if (!config().engram.layer_ids.empty()) {
    hash_.push_back(value_of(model::EngramHash::create(config().engram, token_map)));
  }
  workers_ = std::make_unique<WorkerPool>(2);
  pool_ = std::make_unique<cache::PagePool>(model_->memory().layout.page_bytes(), kPoolBytes);
}

tensor::FloatMatrix OracleModel::session_logits(std::span<const std::int32_t> prompt,
                                                std::span<const std::int32_t> appended) {
  // Only logits are kept: traces of long prompts would be large.
  class LogitsCapture : public model::ForwardObserver {
   public:
    void on_floats(const Place& place, std::span<const float> values) override {
      if (place.name == "logits") logits.insert(logits.end(), values.begin(), values.end());
    }
    void on_integers(const Place&, std::span<const std::int32_t>) override {}
    std::vector<float> logits;
  };
  LogitsCapture capture;
  engine::Session session(
      *model_, *pool_, *workers_,
      {.replay = engine::ReplayMode::kFull, .slice_tokens = prompt.size(), .observer = &capture});
  require_success(session.prefill(prompt));
  for (const std::int32_t token : appended) require_success(session.append(token));
  tensor::FloatMatrix logits(prompt.size() + appended.size(), to_size(config().vocabulary_size));
  if (capture.logits.size() != logits.values().size()) {
    throw std::runtime_error("not every position has logits");
  }
  std::ranges::copy(capture.logits, logits.values().begin());
  return logits;
}

void Capture::on_floats(const Place& place, std::span<const float> values) {
  std::vector<float>& target = floats_[std::string(place.name)];
  target.insert(target.end(), values.begin(), values.end());
}

void Capture::on_integers(const Place& place, std::span<const std::int32_t> values) {
  std::vector<std::int32_t>& target = integers_[std::string(place.name)];
  target.insert(target.end(), values.begin(), values.end());
}

std::span<const float> Capture::floats(std::string_view name) const {
  const auto found = floats_.find(name);
  return found == floats_.end() ? std::span<const float>() : std::span(found->second);
}

std::span<const std::int32_t> Capture::integers(std::string_view name) const {
  const auto found = integers_.find(name);
  return found == integers_.end() ? std::span<const std::int32_t>() : std::span(found->second);
}

}  // namespace locket::test_support
