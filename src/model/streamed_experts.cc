#include "model/streamed_experts.h"

#include <algorithm>
#include <condition_variable>
#include <fmt/format.h>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "base/check.h"

namespace locket::model {
namespace {

// Of a warm start: enough to keep the disk busy, and few enough to tell of progress.
constexpr std::size_t kWarmBatch = 32;

enum class Stage { kLoading, kReady, kFailed, kCount };

// Room for one expert, and the one that is in it.
struct Slot {
  ExpertKey key;
  Stage stage = Stage::kLoading;
  ExpertWeights weights = {};
  Error error = {};        // of kFailed
  std::size_t leases = 0;  // that hold it
  double rank = 0;         // under which it stands among the evictable
};

const StoredExpert& at(const std::vector<std::vector<StoredExpert>>& layers, const ExpertKey& key) {
  return layers[static_cast<std::size_t>(key.layer)][static_cast<std::size_t>(key.expert)];
}

std::vector<const checkpoint::StoredTensor*> tensors_of(
    const std::vector<std::vector<StoredExpert>>& layers) {
  std::vector<const checkpoint::StoredTensor*> tensors;
  const auto add = [&](const StoredWeight& weight) {
    tensors.push_back(&weight.weight);
    if (weight.scale) tensors.push_back(&*weight.scale);
  };
  for (const auto& experts : layers) {
    for (const StoredExpert& expert : experts) {
      add(expert.gate);
      add(expert.up);
      add(expert.down);
    }
  }
  return tensors;
}

}  // namespace

struct StreamedExperts::State {
  State(std::vector<std::vector<StoredExpert>> stored_layers, std::size_t slot_count)
      : layers(std::move(stored_layers)),
        capacity(slot_count),
        uses(layers.size(), layers.front().size()) {}

  // Takes hold of these experts and starts to read those that are not there.
  std::vector<Slot*> acquire(std::span<const ExpertKey> keys);
  void release(std::span<Slot* const> held_slots);
  Result<const ExpertWeights*> wait(Slot& slot);
  bool is_there(const Slot& slot);

  // All below: under mutex.
  Slot* room(std::unique_lock<std::mutex>& lock);
  void pin(Slot& slot);
  void settle(Slot& slot);

  const std::vector<std::vector<StoredExpert>> layers;
  const std::size_t capacity;

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::unique_ptr<Slot>> slots;
  std::vector<Slot*> empty;                          // of slots
  std::map<ExpertKey, Slot*> held;                   // not empty
  std::set<std::pair<double, ExpertKey>> evictable;  // ready, and in no lease
  std::size_t leased = 0;                            // slots in at least one lease
  ExpertUses uses;
  ExpertStreamCounts counts;

  std::unique_ptr<checkpoint::TensorReads> reads;  // last: its threads use the others
};

namespace {

class StreamedLease : public ExpertSource::Lease {
 public:
  StreamedLease(StreamedExperts::State& state, std::vector<Slot*> slots)
      : state_(state), slots_(std::move(slots)) {}
  ~StreamedLease() override { state_.release(slots_); }

  bool is_ready(std::size_t index) const override { return state_.is_there(*slots_[index]); }
  Result<const ExpertWeights*> wait(std::size_t index) override {
    return state_.wait(*slots_[index]);
  }

 private:
  StreamedExperts::State& state_;
  std::vector<Slot*> slots_;
};

}  // namespace

void StreamedExperts::State::pin(Slot& slot) {
  if (slot.leases == 0) {
    leased += 1;
    if (slot.stage == Stage::kReady) evictable.erase({slot.rank, slot.key});
  }
  slot.leases += 1;
}

// Nobody holds it and nothing is being read into it.
void StreamedExperts::State::settle(Slot& slot) {
  if (slot.stage == Stage::kReady) {
    slot.rank = uses.rank(slot.key);
    evictable.emplace(slot.rank, slot.key);
    return;
  }
  held.erase(slot.key);
  empty.push_back(&slot);
}

// An empty slot; waits for one that is being filled for nobody if there is no other.
Slot* StreamedExperts::State::room(std::unique_lock<std::mutex>& lock) {
  while (true) {
    if (!empty.empty()) {
      Slot* slot = empty.back();
      empty.pop_back();
      return slot;
    }
    if (slots.size() < capacity) return slots.emplace_back(std::make_unique<Slot>()).get();
    if (!evictable.empty()) {
      const auto found = held.find(evictable.begin()->second);
      Slot* slot = found->second;
      held.erase(found);
      evictable.erase(evictable.begin());
      return slot;
    }
    LOCKET_CHECK(leased < capacity);
    changed.wait(lock);
  }
}

std::vector<Slot*> StreamedExperts::State::acquire(std::span<const ExpertKey> keys) {
  std::vector<Slot*> taken(keys.size(), nullptr);
  std::vector<Slot*> missing;
  {
    std::unique_lock lock(mutex);
    // First those that are there, so that none of them makes room for the others.
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto found = held.find(keys[i]);
      if (found == held.end()) continue;
      taken[i] = found->second;
      pin(*taken[i]);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (taken[i] != nullptr) continue;
      Slot* slot = room(lock);
      slot->key = keys[i];
      slot->stage = Stage::kLoading;
      held.emplace(slot->key, slot);
      pin(*slot);
      taken[i] = slot;
      missing.push_back(slot);
    }
    counts.hits += keys.size() - missing.size();
    counts.misses += missing.size();
  }
  for (Slot* slot : missing) {
    load_expert(*reads, at(layers, slot->key), slot->weights, [this, slot](Status status) {
      const std::lock_guard lock(mutex);
      slot->stage = status ? Stage::kReady : Stage::kFailed;
      if (!status) slot->error = std::move(status.error());
      if (slot->leases == 0) settle(*slot);
      changed.notify_all();
    });
  }
  return taken;
}

void StreamedExperts::State::release(std::span<Slot* const> held_slots) {
  const std::lock_guard lock(mutex);
  for (Slot* slot : held_slots) {
    slot->leases -= 1;
    if (slot->leases > 0) continue;
    leased -= 1;
    if (slot->stage != Stage::kLoading) settle(*slot);
  }
}

Result<const ExpertWeights*> StreamedExperts::State::wait(Slot& slot) {
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return slot.stage != Stage::kLoading; });
  if (slot.stage == Stage::kFailed) return tl::make_unexpected(slot.error);
  return &slot.weights;
}

bool StreamedExperts::State::is_there(const Slot& slot) {
  const std::lock_guard lock(mutex);
  return slot.stage != Stage::kLoading;
}

StreamedExperts::StreamedExperts(std::unique_ptr<State> state) : state_(std::move(state)) {}

StreamedExperts::~StreamedExperts() = default;

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
  LOCKET_TRY(std::unique_ptr<checkpoint::TensorReads> reads,
             checkpoint::TensorReads::open(tensors_of(layers), options.readers));
  // The inner lists keep their places, so the tensors stay where they are.
  auto state = std::make_unique<State>(std::move(layers), slots);
  state->reads = std::move(reads);
  return std::make_unique<StreamedExperts>(std::move(state));
}

std::size_t StreamedExperts::expert_count() const { return state_->layers.front().size(); }

std::size_t StreamedExperts::capacity() const { return state_->capacity; }

std::size_t StreamedExperts::experts_at_once() const {
  return std::clamp<std::size_t>(state_->capacity / 2, 1, expert_count());
}

std::unique_ptr<ExpertSource::Lease> StreamedExperts::fetch(std::int64_t layer,
                                                            std::span<const std::int32_t> ids) {
  LOCKET_CHECK(ids.size() <= experts_at_once());
  std::vector<ExpertKey> keys;
  for (const std::int32_t id : ids) keys.push_back({.layer = layer, .expert = id});
  {
    const std::lock_guard lock(state_->mutex);
    state_->uses.note(layer, ids);
  }
  return std::make_unique<StreamedLease>(*state_, state_->acquire(keys));
}

ExpertStreamCounts StreamedExperts::counts() const {
  const std::lock_guard lock(state_->mutex);
  ExpertStreamCounts counts = state_->counts;
  counts.bytes_read = state_->reads->bytes_read();
  return counts;
}

ExpertUses StreamedExperts::uses() const {
  const std::lock_guard lock(state_->mutex);
  return state_->uses;
}

void StreamedExperts::warm_up(ExpertUses earlier, const WarmProgress& progress) {
  LOCKET_CHECK(earlier.layers() == state_->layers.size() && earlier.experts() == expert_count());
  std::vector<ExpertKey> keys = earlier.most_used(state_->capacity);
  {
    const std::lock_guard lock(state_->mutex);
    LOCKET_CHECK(state_->leased == 0);
    state_->uses = std::move(earlier);
  }
  std::sort(keys.begin(), keys.end());  // neighbours on disk one after the other
  // The next batch is on its way while one is waited for.
  const std::size_t step = std::min(kWarmBatch, experts_at_once());
  const auto acquire = [&](std::size_t first) -> std::unique_ptr<Lease> {
    if (first >= keys.size()) return nullptr;
    const auto batch = std::span(keys).subspan(first, std::min(step, keys.size() - first));
    return std::make_unique<StreamedLease>(*state_, state_->acquire(batch));
  };
  std::unique_ptr<Lease> lease = acquire(0);
  for (std::size_t done = 0; done < keys.size();) {
    std::unique_ptr<Lease> next = acquire(done + step);
    const std::size_t end = std::min(done + step, keys.size());
    for (; done < end; ++done) static_cast<void>(lease->wait(done % step));
    lease = std::move(next);
    if (progress) progress(done, keys.size());
  }
  const std::lock_guard lock(state_->mutex);
  state_->counts = {};
}

}  // namespace locket::model
