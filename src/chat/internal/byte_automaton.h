// A pushdown automaton over bytes and control tokens: states with edges, jumps that take nothing,
// and calls of rules, which come back to a state of the caller when the rule has ended. Text and
// JSON are described in it by an AutomatonBuilder; AutomatonWalk runs it.
//
// Rules that nest (objects, lists) may be open kMaxNesting deep. `need` of a state says how deep
// the rest of its rule must nest at least, so that a walk never enters what it could not finish.
//
// Automaton is immutable and thread-safe; AutomatonBuilder is not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace locket::chat {

using StateId = std::uint32_t;
using RuleId = std::uint32_t;

// A byte, or one of the control tokens below.
using Symbol = std::uint16_t;
inline constexpr Symbol kLastByte = 255;
inline constexpr Symbol kThinkCloseSymbol = 256;
inline constexpr Symbol kDsmlSymbol = 257;
inline constexpr Symbol kOtherControlSymbol = 258;
inline constexpr std::size_t kSymbolCount = 259;

inline constexpr std::size_t kMaxNesting = 64;
inline constexpr std::size_t kMaxStates = 200'000;
inline constexpr std::size_t kMaxEdges = 1'000'000;
inline constexpr std::uint8_t kNoWayOut = 255;

struct Edge {
  Symbol first = 0;
  Symbol last = 0;
  StateId target = 0;
};

struct Call {
  RuleId rule = 0;
  StateId back = 0;
};

enum class Nesting { kSame, kDeeper, kCount };

struct Rule {
  StateId start = 0;
  StateId end = 0;  // accepting, nothing leaves it
  Nesting nesting = Nesting::kSame;
};

class Automaton {
 public:
  std::size_t state_count() const { return accepting_.size(); }
  const Rule& rule(RuleId rule) const { return rules_[rule]; }
  const Rule& root() const { return rules_[root_]; }

  std::span<const Edge> edges(StateId state) const { return slice(edges_, edge_starts_, state); }
  std::span<const StateId> jumps(StateId state) const { return slice(jumps_, jump_starts_, state); }
  std::span<const Call> calls(StateId state) const { return slice(calls_, call_starts_, state); }
  bool is_accepting(StateId state) const { return accepting_[state] != 0; }
  // Nothing leaves the state: what calls with it as `back` can end with the callee.
  bool is_bare_end(StateId state) const {
    return is_accepting(state) && edges(state).empty() && jumps(state).empty() &&
           calls(state).empty();
  }
  // kNoWayOut: the rule cannot be finished from here.
  std::size_t need(StateId state) const { return need_[state]; }
  // Everything may follow, for ever.
  bool is_free(StateId state) const { return free_[state] != 0; }

 private:
  friend class AutomatonBuilder;

  template <class T>
  static std::span<const T> slice(const std::vector<T>& all,
                                  const std::vector<std::uint32_t>& starts, StateId state) {
    return std::span(all).subspan(starts[state], starts[state + 1] - starts[state]);
  }

  RuleId root_ = 0;
  std::vector<Rule> rules_;
  std::vector<std::uint8_t> accepting_;  // [states]
  std::vector<std::uint8_t> free_;       // [states]
  std::vector<std::uint8_t> need_;       // [states]
  std::vector<Edge> edges_;
  std::vector<StateId> jumps_;
  std::vector<Call> calls_;
  std::vector<std::uint32_t> edge_starts_;  // [states + 1]
  std::vector<std::uint32_t> jump_starts_;
  std::vector<std::uint32_t> call_starts_;
};

// Past kMaxStates or kMaxEdges nothing more is added and finish() fails: whoever adds in a loop
// whose length a client chose asks is_full().
class AutomatonBuilder {
 public:
  StateId add_state();
  RuleId add_rule(Nesting nesting);
  const Rule& rule(RuleId rule) const { return rules_[rule]; }

  void add_edge(StateId from, Symbol first, Symbol last, StateId to);
  void add_symbol(StateId from, Symbol symbol, StateId to) { add_edge(from, symbol, symbol, to); }
  void add_byte(StateId from, char byte, StateId to);
  void add_jump(StateId from, StateId to);
  void add_call(StateId from, RuleId rule, StateId back);
  void set_accepting(StateId state) { accepting_[state] = 1; }
  // Everything may follow the state, and the output may end.
  void set_free(StateId state) { free_[state] = accepting_[state] = 1; }

  // The text byte by byte; returns the state behind it.
  StateId add_text(StateId from, std::string_view text);
  void add_text_to(StateId from, std::string_view text, StateId to);

  std::size_t state_count() const { return accepting_.size(); }
  bool is_full() const { return is_full_; }

  // kBadRequest names `what` and the limit that was passed, or says that nothing satisfies it.
  [[nodiscard]] Result<Automaton> finish(RuleId root, std::string_view what) const;

 private:
  struct FromEdge {
    StateId from;
    Edge edge;
  };
  struct FromJump {
    StateId from;
    StateId target;
  };
  struct FromCall {
    StateId from;
    Call call;
  };

  bool has_room();
  std::vector<std::uint8_t> find_needs(const Automaton& automaton) const;

  std::vector<Rule> rules_;
  std::vector<std::uint8_t> accepting_;
  std::vector<std::uint8_t> free_;
  std::vector<FromEdge> edges_;
  std::vector<FromJump> jumps_;
  std::vector<FromCall> calls_;
  bool is_full_ = false;
};

}  // namespace locket::chat
