// The room that a cache of experts has, slot by slot: who is in it, who holds it, what goes for
// another, and what is read into it. streamed_experts.h is the interface; this is its state.
//
// A slot is empty, loading, ready or failed. Leases and the guess pin it; a ready slot without pins
// may be emptied, least used first. A slot that was only guessed and is given up while it loads is
// no longer found under its name, and becomes empty when its reads have ended.
//
// acquire(), expect(), end_guess() and release(): one caller at a time; the readers' threads call
// take_loaded() meanwhile. counts() and uses(): any thread.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"
#include "checkpoint/tensor_reads.h"
#include "model/expert_load.h"
#include "model/expert_source.h"
#include "model/expert_uses.h"

namespace locket::model {

struct ExpertStreamCounts {
  std::uint64_t hits = 0;        // experts asked for that were there or on their way
  std::uint64_t misses = 0;      // experts asked for that had to be read
  std::uint64_t foreseen = 0;    // of the hits, those that are there because they were expected
  std::uint64_t in_vain = 0;     // reads ahead that were given up, or went before anybody asked
  std::uint64_t bytes_read = 0;  // of the disk
};

class ExpertSlots {
 public:
  enum class Stage { kLoading, kReady, kFailed, kCount };

  // Room for one expert, and the one that is in it.
  struct Slot {
    ExpertKey key;
    Stage stage = Stage::kLoading;
    ExpertWeights weights = {};
    Error error = {};        // of kFailed
    std::size_t leases = 0;  // that hold it; the guess is one
    double rank = 0;         // under which it stands among the evictable

    bool is_unasked = false;                      // read ahead; no acquire() has named it
    bool is_given_up = false;                     // loading, and not found any more
    checkpoint::TensorReads::Ticket ticket = {};  // of who calls acquire() and expect()
  };

  // `layers`: [layers][experts]; opens their files.
  [[nodiscard]] static Result<std::unique_ptr<ExpertSlots>> open(
      std::vector<std::vector<StoredExpert>> layers, std::size_t capacity, std::size_t readers);
  ExpertSlots(std::vector<std::vector<StoredExpert>> layers, std::size_t capacity);
  ExpertSlots(const ExpertSlots&) = delete;
  ExpertSlots& operator=(const ExpertSlots&) = delete;
  ~ExpertSlots();

  const std::vector<std::vector<StoredExpert>>& layers() const { return layers_; }
  std::size_t capacity() const { return capacity_; }

  // Takes hold of these experts and starts to read those that are not there.
  std::vector<Slot*> acquire(std::span<const ExpertKey> keys);
  void release(std::span<Slot* const> held_slots);
  [[nodiscard]] Result<const ExpertWeights*> wait(Slot& slot);
  // One of `indices` that is not loading any more; returns when there is one.
  std::size_t wait_any(std::span<Slot* const> lease_slots, std::span<const std::size_t> indices);
  bool is_there(const Slot& slot);

  // Takes the place of the guess before. Reads what is missing of the first `most`, behind
  // everything else, as far as there is room.
  void expect(std::int64_t layer, std::span<const std::int32_t> ids, std::size_t most);
  // A guess for this layer is not needed any more.
  void end_guess(std::int64_t layer);

  void note_use(std::int64_t layer, std::span<const std::int32_t> ids);
  ExpertUses uses() const;
  // REQUIRES: no lease is alive.
  void set_uses(ExpertUses uses);
  ExpertStreamCounts counts() const;
  void reset_counts();

 private:
  using Turn = checkpoint::TensorReads::Turn;
  using Lock = std::unique_lock<std::mutex>;

  // What the next acquire() for a layer will probably name.
  struct Guess {
    std::int64_t layer = -1;
    std::vector<Slot*> slots;
  };

  void load(std::span<Slot* const> missing, Turn turn);
  void take_loaded(Slot& slot, Status status);

  // Under mutex_; those that are given the lock let go of it meanwhile.
  Slot* free_room();
  Slot* room(Lock& lock);
  void fill(Slot& slot, const ExpertKey& key);
  void ask(Slot& slot);
  void pin(Slot& slot);
  void unpin(Slot& slot);
  void settle(Slot& slot);
  void give_up(Lock& lock, std::span<Slot* const> guessed);
  void forget_failed_guesses();

  const std::vector<std::vector<StoredExpert>> layers_;
  const std::size_t capacity_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<Slot*> empty_;                          // of slots_
  std::map<ExpertKey, Slot*> held_;                   // not empty
  std::set<std::pair<double, ExpertKey>> evictable_;  // ready, and not pinned
  std::size_t leased_ = 0;                            // slots that are pinned
  Guess guess_;
  ExpertUses uses_;
  ExpertStreamCounts counts_;

  std::unique_ptr<checkpoint::TensorReads> reads_;  // last: its threads use the others
};

}  // namespace locket::model
