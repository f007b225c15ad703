#include "model/streamed_experts.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/check.h"

namespace locket::model {
namespace {

// Of a warm start: enough to keep the disk busy, and few enough to tell of progress.
constexpr std::size_t kWarmBatch = 32;

class StreamedLease : public ExpertSource::Lease {
 public:
  StreamedLease(ExpertSlots& slots, std::span<const ExpertKey> keys)
      : slots_(slots), held_(slots.acquire(keys)) {}
  ~StreamedLease() override { slots_.release(held_); }

  bool is_ready(std::size_t index) const override { return slots_.is_there(*held_[index]); }
  Result<const ExpertWeights*> wait(std::size_t index) override {
    return slots_.wait(*held_[index]);
  }
  std::size_t wait_any(std::span<const std::size_t> indices) override {
    return slots_.wait_any(held_, indices);
  }

 private:
  ExpertSlots& slots_;
  std::vector<ExpertSlots::Slot*> held_;
};

}  // namespace

StreamedExperts::StreamedExperts(std::unique_ptr<ExpertSlots> slots) : slots_(std::move(slots)) {}

Result<std::unique_ptr<StreamedExperts>> StreamedExperts::create(
    std::vector<std::vector<StoredExpert>> layers, const StreamedExpertsOptions& options) {
  LOCKET_CHECK(!layers.empty() && !layers.front().empty() && options.readers >= 1);
  std::size_t largest = 0;
  for (const auto& experts : layers) {
    LOCKET_CHECK(experts.size() == layers.front().size());
    for (const StoredExpert& expert : experts) largest = std::max(largest, expert.packed_bytes());
  }
  const std::size_t all = layers.size() * layers.front().size();
  const std::size_t slots =
      std::min<std::size_t>(all, static_cast<std::size_t>(options.budget_bytes / largest));
  if (slots < 2) {
    return fail(ErrorCode::kOverBudget, fmt::format("{} bytes do not hold two experts of {} bytes",
                                                    options.budget_bytes, largest));
  }
  LOCKET_TRY(auto opened, ExpertSlots::open(std::move(layers), slots, options.readers));
  return std::make_unique<StreamedExperts>(std::move(opened));
}

std::size_t StreamedExperts::expert_count() const { return slots_->layers().front().size(); }

std::size_t StreamedExperts::capacity() const { return slots_->capacity(); }

std::size_t StreamedExperts::experts_at_once() const {
  return std::clamp<std::size_t>(slots_->capacity() / 2, 1, expert_count());
}

std::unique_ptr<ExpertSource::Lease> StreamedExperts::fetch(std::int64_t layer,
                                                            std::span<const std::int32_t> ids) {
  LOCKET_CHECK(ids.size() <= experts_at_once());
  std::vector<ExpertKey> keys;
  for (const std::int32_t id : ids) keys.push_back({.layer = layer, .expert = id});
  slots_->note_use(layer, ids);
  auto lease = std::make_unique<StreamedLease>(*slots_, keys);
  // A full group may not be the last one of its layer.
  if (ids.size() < experts_at_once()) slots_->end_guess(layer);
  return lease;
}

// Room for what is needed meanwhile is left.
void StreamedExperts::expect(std::int64_t layer, std::span<const std::int32_t> ids) {
  slots_->expect(layer, ids, (experts_at_once() + 1) / 2);
}

ExpertStreamCounts StreamedExperts::counts() const { return slots_->counts(); }

ExpertUses StreamedExperts::uses() const { return slots_->uses(); }

void StreamedExperts::warm_up(ExpertUses earlier, const WarmProgress& progress) {
  LOCKET_CHECK(earlier.layers() == slots_->layers().size() && earlier.experts() == expert_count());
  std::vector<ExpertKey> keys = earlier.most_used(slots_->capacity());
  slots_->set_uses(std::move(earlier));
  std::sort(keys.begin(), keys.end());  // neighbours on disk one after the other
  // The next batch is on its way while one is waited for.
  const std::size_t step = std::min(kWarmBatch, experts_at_once());
  const auto acquire = [&](std::size_t first) -> std::unique_ptr<Lease> {
    if (first >= keys.size()) return nullptr;
    const auto batch = std::span(keys).subspan(first, std::min(step, keys.size() - first));
    return std::make_unique<StreamedLease>(*slots_, batch);
  };
  std::unique_ptr<Lease> lease = acquire(0);
  for (std::size_t done = 0; done < keys.size();) {
    std::unique_ptr<Lease> next = acquire(done + step);
    const std::size_t end = std::min(done + step, keys.size());
    for (; done < end; ++done) static_cast<void>(lease->wait(done % step));
    lease = std::move(next);
    if (progress) progress(done, keys.size());
  }
  slots_->reset_counts();
}

}  // namespace locket::model
