// Makes states out of a step function: for automata that are easier to compute than to draw, such
// as numbers within bounds. Pure functions on their builder.
#pragma once

#include <cstddef>
#include <deque>
#include <limits>
#include <map>
#include <optional>

#include "chat/internal/byte_automaton.h"

namespace locket::chat {

// Which bytes a step function is asked about.
struct ByteSpan {
  Symbol first = 0;
  Symbol last = kLastByte;
};

// Adds everything that `step(state, byte)` leads to from `first`, and calls `visit(state, id)` once
// for every state, to mark it or to leave by something else. Nothing if there are more than
// `max_states`. REQUIRES: State has an order.
template <class State, class Step, class Visit>
std::optional<StateId> explore_states(AutomatonBuilder& builder, const State& first, ByteSpan bytes,
                                      std::size_t max_states, Step step, Visit visit) {
  std::map<State, StateId> ids;
  std::deque<std::pair<State, StateId>> pending;
  const auto id_of = [&](const State& state) {
    const auto [entry, is_new] = ids.try_emplace(state, 0);
    if (is_new) {
      entry->second = builder.add_state();
      pending.emplace_back(state, entry->second);
    }
    return entry->second;
  };
  const StateId start = id_of(first);
  while (!pending.empty()) {
    if (ids.size() > max_states || builder.is_full()) return std::nullopt;
    const auto [state, id] = pending.front();
    pending.pop_front();
    visit(state, id);
    // The edge that goes on; leads nowhere if there is none.
    constexpr StateId kNowhere = std::numeric_limits<StateId>::max();
    Edge edge = {.target = kNowhere};
    for (Symbol byte = bytes.first; byte <= bytes.last; ++byte) {
      const std::optional<State> next = step(state, static_cast<unsigned char>(byte));
      const StateId target = next ? id_of(*next) : kNowhere;
      if (target == edge.target) {
        edge.last = byte;
        continue;
      }
      if (edge.target != kNowhere) builder.add_edge(id, edge.first, edge.last, edge.target);
      edge = {byte, byte, target};
    }
    if (edge.target != kNowhere) builder.add_edge(id, edge.first, edge.last, edge.target);
  }
  return start;
}

}  // namespace locket::chat
