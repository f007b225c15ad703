// Runs an Automaton: every set of places that a text can lead to is a spot, made when it is first
// reached and remembered, so that a step that was taken before is one look-up.
//
// A spot keeps at most kMaxPlaces places; what a hostile schema has beyond them is dropped, which
// only narrows what may come: every place that is kept can be finished. A spot other than
// kNowhere always has a way to the end.
//
// Not thread-safe. The automaton must outlive the walk.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "chat/internal/byte_automaton.h"

namespace locket::chat {

using SpotId = std::uint32_t;
inline constexpr SpotId kNowhere = 0;  // the text fits nothing

class AutomatonWalk {
 public:
  static constexpr std::size_t kMaxPlaces = 4096;

  explicit AutomatonWalk(const Automaton& automaton);

  SpotId start();
  SpotId step(SpotId spot, Symbol symbol) {
    const SpotId known = known_step(spot, symbol);
    return known == kUnknown ? compute_step(spot, symbol) : known;
  }

  // step() as long as the work allowed by set_budget() lasts; then kNowhere for steps that were
  // never taken before.
  SpotId step_in_budget(SpotId spot, Symbol symbol) {
    const SpotId known = known_step(spot, symbol);
    if (known != kUnknown) return known;
    return budget_ == 0 ? kNowhere : compute_step(spot, symbol);
  }
  void set_budget(std::size_t places) { budget_ = places; }

  // The text may end here.
  bool is_final(SpotId spot) const { return spots_[spot].is_final; }
  // The text can only end here.
  bool is_over(SpotId spot) const { return is_final(spot) && spots_[spot].places.empty(); }
  // Everything may follow.
  bool is_free(SpotId spot) const { return spots_[spot].is_free; }

  std::size_t spot_count() const { return spots_.size(); }
  // Whether what is remembered should be dropped by forget().
  bool is_crowded() const;
  // Drops every spot but this one and returns its new id.
  SpotId forget(SpotId kept);

 private:
  using StackId = std::uint32_t;
  static constexpr StackId kBottom = 0;
  static constexpr SpotId kUnknown = std::numeric_limits<SpotId>::max();

  // What is to be done when the rule that is open ends.
  struct Frame {
    StateId back = 0;
    StackId below = kBottom;
    std::uint8_t depth = 0;
  };

  struct Place {
    StateId state = 0;
    StackId stack = kBottom;

    friend bool operator==(const Place&, const Place&) = default;
    friend bool operator<(const Place& one, const Place& other) {
      return std::tie(one.state, one.stack) < std::tie(other.state, other.stack);
    }
  };

  struct Spot {
    std::vector<Place> places;  // sorted; states with edges
    bool is_final = false;
    bool is_free = false;
    SpotId same_hash = kNowhere;  // the next spot whose places have this hash
    std::unique_ptr<std::array<SpotId, kSymbolCount>> steps;
  };

  static std::uint64_t key_of(const Place& place) {
    return (std::uint64_t{place.stack} << 32) | place.state;
  }

  SpotId known_step(SpotId spot, Symbol symbol) const {
    const auto& steps = spots_[spot].steps;
    return steps == nullptr ? kUnknown : (*steps)[symbol];
  }

  SpotId compute_step(SpotId spot, Symbol symbol);
  void begin_spot();
  void visit(StateId state, StackId stack);
  void visit_call(const Call& call, StackId stack);
  void spread();
  SpotId end_spot();
  StackId push(StateId back, StackId below, std::size_t depth);

  const Automaton& automaton_;
  std::vector<Frame> frames_;
  std::unordered_map<std::uint64_t, StackId> frame_ids_;  // by back, below and whether it nests
  std::vector<Spot> spots_;
  std::unordered_map<std::uint64_t, SpotId> spots_by_hash_;
  std::size_t place_count_ = 0;
  std::size_t budget_ = 0;

  // The spot that is being made.
  std::vector<Place> pending_;
  std::vector<Place> places_;
  bool is_final_ = false;
  bool is_free_ = false;
  std::size_t visited_count_ = 0;
  std::vector<std::uint64_t> visited_;        // open addressing, by key_of
  std::vector<std::uint32_t> visited_round_;  // an entry counts if it is of this round
  std::uint32_t round_ = 0;
};

}  // namespace locket::chat
