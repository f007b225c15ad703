#include "chat/internal/automaton_walk.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace locket::chat {
namespace {

// Places looked at while one spot is made; at most this many are kept.
constexpr std::size_t kMaxVisited = 4 * AutomatonWalk::kMaxPlaces;
constexpr std::size_t kTableSize = std::size_t{4} * kMaxVisited;
// What a step costs besides its places, mostly memory.
constexpr std::size_t kStepWork = 32;
constexpr std::size_t kCrowdedSpots = 4096;
constexpr std::size_t kCrowdedPlaces = 400'000;

std::uint64_t mix(std::uint64_t value) {
  value ^= value >> 32;
  value *= 0x9E3779B97F4A7C15U;
  return value ^ (value >> 29);
}

}  // namespace

AutomatonWalk::AutomatonWalk(const Automaton& automaton)
    : automaton_(automaton), visited_(kTableSize), visited_round_(kTableSize) {
  frames_.emplace_back();
  spots_.emplace_back();
}

SpotId AutomatonWalk::start() {
  begin_spot();
  visit(automaton_.root().start, kBottom);
  spread();
  return end_spot();
}

SpotId AutomatonWalk::compute_step(SpotId spot, Symbol symbol) {
  begin_spot();
  for (std::size_t index = 0; index < spots_[spot].places.size(); ++index) {
    const Place place = spots_[spot].places[index];
    if (automaton_.is_free(place.state)) visit(place.state, place.stack);
    for (const Edge& edge : automaton_.edges(place.state)) {
      if (symbol >= edge.first && symbol <= edge.last) visit(edge.target, place.stack);
    }
  }
  spread();
  const std::size_t work = kStepWork + spots_[spot].places.size() + visited_count_;
  budget_ -= std::min(budget_, work);
  const SpotId next = end_spot();
  auto& steps = spots_[spot].steps;
  if (steps == nullptr) {
    steps = std::make_unique<std::array<SpotId, kSymbolCount>>();
    steps->fill(kUnknown);
  }
  (*steps)[symbol] = next;
  return next;
}

void AutomatonWalk::begin_spot() {
  pending_.clear();
  places_.clear();
  is_final_ = is_free_ = false;
  visited_count_ = 0;
  ++round_;
}

void AutomatonWalk::visit(StateId state, StackId stack) {
  if (frames_[stack].depth + automaton_.need(state) > kMaxNesting) return;
  if (visited_count_ == kMaxVisited) return;
  const Place place{state, stack};
  const std::uint64_t key = key_of(place);
  std::size_t slot = mix(key) % kTableSize;
  while (visited_round_[slot] == round_) {
    if (visited_[slot] == key) return;
    slot = (slot + 1) % kTableSize;
  }
  visited_round_[slot] = round_;
  visited_[slot] = key;
  ++visited_count_;
  pending_.push_back(place);
}

void AutomatonWalk::visit_call(const Call& call, StackId stack) {
  const Rule& rule = automaton_.rule(call.rule);
  const bool nests = rule.nesting == Nesting::kDeeper;
  const std::size_t depth = frames_[stack].depth + (nests ? 1U : 0U);
  if (depth + automaton_.need(rule.start) > kMaxNesting) return;
  if (frames_[stack].depth + automaton_.need(call.back) > kMaxNesting) return;
  if (!nests && automaton_.is_bare_end(call.back)) return visit(rule.start, stack);
  visit(rule.start, push(call.back, stack, depth));
}

void AutomatonWalk::spread() {
  while (!pending_.empty()) {
    const Place place = pending_.back();
    pending_.pop_back();
    if (automaton_.is_accepting(place.state)) {
      if (place.stack == kBottom) {
        is_final_ = true;
      } else {
        const Frame frame = frames_[place.stack];
        visit(frame.back, frame.below);
      }
    }
    if (automaton_.is_free(place.state)) is_free_ = true;
    for (const StateId target : automaton_.jumps(place.state)) visit(target, place.stack);
    for (const Call& call : automaton_.calls(place.state)) visit_call(call, place.stack);
    const bool is_kept = automaton_.is_free(place.state) || !automaton_.edges(place.state).empty();
    if (is_kept && places_.size() < kMaxPlaces) places_.push_back(place);
  }
}

SpotId AutomatonWalk::end_spot() {
  if (places_.empty() && !is_final_) return kNowhere;
  std::sort(places_.begin(), places_.end());
  std::uint64_t hash = is_final_ ? 1 : 2;
  for (const Place& place : places_) hash = mix(hash * 31 + key_of(place));
  const auto [entry, is_first] = spots_by_hash_.try_emplace(hash, kNowhere);
  for (SpotId spot = entry->second; spot != kNowhere; spot = spots_[spot].same_hash) {
    if (spots_[spot].is_final == is_final_ && spots_[spot].places == places_) return spot;
  }
  Spot spot;
  spot.places.assign(places_.begin(), places_.end());
  spot.is_final = is_final_;
  spot.is_free = is_free_;
  spot.same_hash = entry->second;
  spots_.push_back(std::move(spot));
  place_count_ += places_.size();
  entry->second = static_cast<SpotId>(spots_.size() - 1);
  return entry->second;
}

AutomatonWalk::StackId AutomatonWalk::push(StateId back, StackId below, std::size_t depth) {
  const std::uint64_t nests = depth != frames_[below].depth ? 1 : 0;
  const std::uint64_t key = (((std::uint64_t{back} << 32) | below) << 1) | nests;
  const auto [entry, is_first] = frame_ids_.try_emplace(key, static_cast<StackId>(frames_.size()));
  if (is_first) frames_.push_back({back, below, static_cast<std::uint8_t>(depth)});
  return entry->second;
}

bool AutomatonWalk::is_crowded() const {
  return spots_.size() > kCrowdedSpots || place_count_ > kCrowdedPlaces ||
         frames_.size() > kCrowdedPlaces;
}

SpotId AutomatonWalk::forget(SpotId kept) {
  LOCKET_CHECK(kept != kNowhere);
  const Spot old = std::move(spots_[kept]);
  const std::vector<Frame> old_frames = std::exchange(frames_, {});
  frames_.emplace_back();
  frame_ids_.clear();
  spots_.resize(1);
  spots_by_hash_.clear();
  place_count_ = 0;
  begin_spot();
  is_final_ = old.is_final;
  is_free_ = old.is_free;
  std::vector<StackId> chain;
  for (const Place& place : old.places) {
    chain.clear();
    for (StackId at = place.stack; at != kBottom; at = old_frames[at].below) chain.push_back(at);
    StackId stack = kBottom;
    for (auto at = chain.rbegin(); at != chain.rend(); ++at) {
      stack = push(old_frames[*at].back, stack, old_frames[*at].depth);
    }
    places_.push_back({place.state, stack});
  }
  return end_spot();
}

}  // namespace locket::chat
