#include "model/expert_slots.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace locket::model {
namespace {

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

Result<std::unique_ptr<ExpertSlots>> ExpertSlots::open(
    std::vector<std::vector<StoredExpert>> layers, std::size_t capacity, std::size_t readers) {
  auto slots = std::make_unique<ExpertSlots>(std::move(layers), capacity);
  LOCKET_TRY(slots->reads_, checkpoint::TensorReads::open(tensors_of(slots->layers_), readers));
  return slots;
}

ExpertSlots::ExpertSlots(std::vector<std::vector<StoredExpert>> layers, std::size_t capacity)
    : layers_(std::move(layers)),
      capacity_(capacity),
      uses_(layers_.size(), layers_.front().size()) {}

ExpertSlots::~ExpertSlots() { end_guess(guess_.layer); }

void ExpertSlots::pin(Slot& slot) {
  if (slot.leases == 0) {
    leased_ += 1;
    if (slot.stage == Stage::kReady) evictable_.erase({slot.rank, slot.key});
  }
  slot.leases += 1;
}

void ExpertSlots::unpin(Slot& slot) {
  slot.leases -= 1;
  if (slot.leases > 0) return;
  leased_ -= 1;
  if (slot.stage != Stage::kLoading) settle(slot);
}

// Nobody holds it and nothing is being read into it.
void ExpertSlots::settle(Slot& slot) {
  if (slot.stage == Stage::kReady) {
    slot.rank = uses_.rank(slot.key);
    evictable_.emplace(slot.rank, slot.key);
    return;
  }
  held_.erase(slot.key);
  empty_.push_back(&slot);
}

// An empty slot; null if there is none.
ExpertSlots::Slot* ExpertSlots::free_room() {
  if (!empty_.empty()) {
    Slot* slot = empty_.back();
    empty_.pop_back();
    return slot;
  }
  if (slots_.size() < capacity_) return slots_.emplace_back(std::make_unique<Slot>()).get();
  if (evictable_.empty()) return nullptr;
  const auto found = held_.find(evictable_.begin()->second);
  Slot* slot = found->second;
  held_.erase(found);
  evictable_.erase(evictable_.begin());
  counts_.in_vain += slot->is_unasked ? 1 : 0;
  return slot;
}

// What is only guessed makes room; then, what is still being filled for nobody.
ExpertSlots::Slot* ExpertSlots::room(Lock& lock) {
  while (true) {
    if (Slot* slot = free_room()) return slot;
    if (!guess_.slots.empty()) {
      give_up(lock, std::exchange(guess_, {}).slots);
      continue;
    }
    LOCKET_CHECK(leased_ < capacity_);
    changed_.wait(lock);
  }
}

void ExpertSlots::fill(Slot& slot, const ExpertKey& key) {
  slot.key = key;
  slot.stage = Stage::kLoading;
  slot.is_unasked = false;
  held_.emplace(key, &slot);
  pin(slot);
}

void ExpertSlots::ask(Slot& slot) {
  if (!slot.is_unasked) return;
  slot.is_unasked = false;
  counts_.foreseen += 1;
  if (slot.stage == Stage::kLoading) reads_->hurry(slot.ticket);
}

// Lets go of guessed slots; those that nobody else wants and that are not there are not read.
void ExpertSlots::give_up(Lock& lock, std::span<Slot* const> guessed) {
  std::vector<checkpoint::TensorReads::Ticket> tickets;
  for (Slot* slot : guessed) {
    unpin(*slot);
    if (slot->leases > 0 || slot->stage != Stage::kLoading || !slot->is_unasked) continue;
    held_.erase(slot->key);
    slot->is_given_up = true;
    counts_.in_vain += 1;
    tickets.push_back(slot->ticket);
  }
  lock.unlock();
  for (const auto ticket : tickets) reads_->cancel(ticket);
  lock.lock();
}

// Who asks for them now shall see whether they can be read now.
void ExpertSlots::forget_failed_guesses() {
  std::erase_if(guess_.slots, [this](Slot* slot) {
    if (slot->stage != Stage::kFailed) return false;
    unpin(*slot);
    return true;
  });
}

void ExpertSlots::load(std::span<Slot* const> missing, Turn turn) {
  for (Slot* slot : missing) {
    slot->ticket = load_expert(
        *reads_, at(layers_, slot->key), slot->weights,
        [this, slot](Status status) { take_loaded(*slot, std::move(status)); }, turn);
  }
}

void ExpertSlots::take_loaded(Slot& slot, Status status) {
  const std::lock_guard lock(mutex_);
  slot.stage = status ? Stage::kReady : Stage::kFailed;
  if (!status) slot.error = std::move(status.error());
  if (std::exchange(slot.is_given_up, false)) {
    empty_.push_back(&slot);
  } else if (slot.leases == 0) {
    settle(slot);
  }
  changed_.notify_all();
}

std::vector<ExpertSlots::Slot*> ExpertSlots::acquire(std::span<const ExpertKey> keys) {
  std::vector<Slot*> taken(keys.size(), nullptr);
  std::vector<Slot*> missing;
  {
    Lock lock(mutex_);
    forget_failed_guesses();
    // First those that are there, so that none of them makes room for the others.
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto found = held_.find(keys[i]);
      if (found == held_.end()) continue;
      taken[i] = found->second;
      pin(*taken[i]);
      ask(*taken[i]);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (taken[i] != nullptr) continue;
      taken[i] = room(lock);
      fill(*taken[i], keys[i]);
      missing.push_back(taken[i]);
    }
    counts_.hits += keys.size() - missing.size();
    counts_.misses += missing.size();
  }
  load(missing, Turn::kNow);
  return taken;
}

void ExpertSlots::expect(std::int64_t layer, std::span<const std::int32_t> ids, std::size_t most) {
  std::vector<Slot*> missing;
  {
    Lock lock(mutex_);
    Guess next = {.layer = layer, .slots = {}};
    std::vector<ExpertKey> not_held;
    for (const std::int32_t id : ids.first(std::min(ids.size(), most))) {
      const auto found = held_.find({.layer = layer, .expert = id});
      if (found == held_.end()) {
        not_held.push_back({.layer = layer, .expert = id});
        continue;
      }
      pin(*found->second);
      next.slots.push_back(found->second);
    }
    // What the last guess does not need any more is the first to make room.
    give_up(lock, std::exchange(guess_, {}).slots);
    for (const ExpertKey& key : not_held) {
      Slot* slot = free_room();
      if (slot == nullptr) break;
      fill(*slot, key);
      slot->is_unasked = true;
      next.slots.push_back(slot);
      missing.push_back(slot);
    }
    guess_ = std::move(next);
  }
  load(missing, Turn::kAhead);
}

void ExpertSlots::end_guess(std::int64_t layer) {
  Lock lock(mutex_);
  if (guess_.layer == layer) give_up(lock, std::exchange(guess_, {}).slots);
}

void ExpertSlots::release(std::span<Slot* const> held_slots) {
  const std::lock_guard lock(mutex_);
  for (Slot* slot : held_slots) unpin(*slot);
}

Result<const ExpertWeights*> ExpertSlots::wait(Slot& slot) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return slot.stage != Stage::kLoading; });
  if (slot.stage == Stage::kFailed) return tl::make_unexpected(slot.error);
  return &slot.weights;
}

std::size_t ExpertSlots::wait_any(std::span<Slot* const> lease_slots,
                                  std::span<const std::size_t> indices) {
  Lock lock(mutex_);
  auto found = indices.end();
  changed_.wait(lock, [&] {
    found = std::ranges::find_if(
        indices, [&](std::size_t index) { return lease_slots[index]->stage != Stage::kLoading; });
    return found != indices.end();
  });
  return *found;
}

bool ExpertSlots::is_there(const Slot& slot) {
  const std::lock_guard lock(mutex_);
  return slot.stage != Stage::kLoading;
}

void ExpertSlots::note_use(std::int64_t layer, std::span<const std::int32_t> ids) {
  const std::lock_guard lock(mutex_);
  uses_.note(layer, ids);
}

ExpertUses ExpertSlots::uses() const {
  const std::lock_guard lock(mutex_);
  return uses_;
}

void ExpertSlots::set_uses(ExpertUses uses) {
  end_guess(guess_.layer);
  const std::lock_guard lock(mutex_);
  LOCKET_CHECK(leased_ == 0);
  uses_ = std::move(uses);
}

ExpertStreamCounts ExpertSlots::counts() const {
  const std::lock_guard lock(mutex_);
  ExpertStreamCounts counts = counts_;
  counts.bytes_read = reads_->bytes_read();
  return counts;
}

void ExpertSlots::reset_counts() {
  const std::lock_guard lock(mutex_);
  counts_ = {};
}

}  // namespace locket::model
