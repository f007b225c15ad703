#include "model/expert_source.h"

#include <utility>

#include "base/check.h"

namespace locket::model {
namespace {

class ResidentLease : public ExpertSource::Lease {
 public:
  ResidentLease(std::span<const ExpertWeights> experts, std::span<const std::int32_t> ids) {
    for (const std::int32_t id : ids) weights_.push_back(&experts[static_cast<std::size_t>(id)]);
  }

  bool is_ready(std::size_t /*index*/) const override { return true; }
  Result<const ExpertWeights*> wait(std::size_t index) override { return weights_[index]; }

 private:
  std::vector<const ExpertWeights*> weights_;
};

class ResidentExperts : public ExpertSource {
 public:
  explicit ResidentExperts(std::vector<std::vector<ExpertWeights>> layers)
      : layers_(std::move(layers)) {
    LOCKET_CHECK(!layers_.empty() && !layers_.back().empty());
    for (const auto& experts : layers_) {
      LOCKET_CHECK(experts.empty() || experts.size() == expert_count());
    }
  }

  std::size_t expert_count() const override { return layers_.back().size(); }
  std::size_t experts_at_once() const override { return expert_count(); }

  std::unique_ptr<Lease> fetch(std::int64_t layer, std::span<const std::int32_t> ids) override {
    const auto at = static_cast<std::size_t>(layer);
    LOCKET_CHECK(at < layers_.size());
    return std::make_unique<ResidentLease>(layers_[at], ids);
  }

 private:
  const std::vector<std::vector<ExpertWeights>> layers_;
};

}  // namespace

std::unique_ptr<ExpertSource> resident_experts(std::vector<std::vector<ExpertWeights>> layers) {
  return std::make_unique<ResidentExperts>(std::move(layers));
}

}  // namespace locket::model
