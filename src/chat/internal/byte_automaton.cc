#include "chat/internal/byte_automaton.h"

#include <fmt/format.h>
#include <utility>

namespace locket::chat {
namespace {

// Puts `items` in the order of their `from`; returns where each state's begin.
template <class Item, class Out, class Take>
std::vector<std::uint32_t> sort_by_state(const std::vector<Item>& items, std::size_t state_count,
                                         std::vector<Out>& out, Take take) {
  std::vector<std::uint32_t> starts(state_count + 1, 0);
  for (const Item& item : items) ++starts[item.from + 1];
  for (std::size_t state = 0; state < state_count; ++state) starts[state + 1] += starts[state];
  std::vector<std::uint32_t> next(starts.begin(), starts.end() - 1);
  out.resize(items.size());
  for (const Item& item : items) out[next[item.from]++] = take(item);
  return starts;
}

// Finds for every state the least nesting with which its rule can end, level by level: a state is
// reached in the first level in which one of its ways out is open.
class NeedFinder {
 public:
  struct CallEdge {
    StateId from;
    Call call;
  };

  NeedFinder(const Automaton& automaton, std::vector<Rule> rules)
      : automaton_(automaton),
        rules_(std::move(rules)),
        needs_(automaton.state_count(), kNoWayOut),
        sources_(automaton.state_count()),
        calls_back_to_(automaton.state_count()),
        calls_of_start_(automaton.state_count()) {
    for (StateId state = 0; state < automaton.state_count(); ++state) {
      for (const Edge& edge : automaton.edges(state)) sources_[edge.target].push_back(state);
      for (const StateId target : automaton.jumps(state)) sources_[target].push_back(state);
      for (const Call& call : automaton.calls(state)) {
        calls_back_to_[call.back].push_back({state, call});
        calls_of_start_[rules_[call.rule].start].push_back({state, call});
      }
    }
  }

  std::vector<std::uint8_t> find() {
    for (StateId state = 0; state < needs_.size(); ++state) {
      if (automaton_.is_accepting(state)) reach(state);
    }
    for (level_ = 0; level_ <= kMaxNesting; ++level_) {
      const std::vector<CallEdge> opened = std::exchange(next_level_, {});
      for (const CallEdge& edge : opened) try_call(edge);
      spread();
    }
    return std::move(needs_);
  }

 private:
  void reach(StateId state) {
    if (needs_[state] != kNoWayOut) return;
    needs_[state] = static_cast<std::uint8_t>(level_);
    pending_.push_back(state);
  }

  void spread() {
    while (!pending_.empty()) {
      const StateId state = pending_.back();
      pending_.pop_back();
      for (const StateId source : sources_[state]) reach(source);
      for (const CallEdge& edge : calls_back_to_[state]) try_call(edge);
      for (const CallEdge& edge : calls_of_start_[state]) {
        if (rules_[edge.call.rule].nesting == Nesting::kDeeper) {
          next_level_.push_back(edge);
        } else {
          try_call(edge);
        }
      }
    }
  }

  void try_call(const CallEdge& edge) {
    const Rule& rule = rules_[edge.call.rule];
    if (needs_[edge.call.back] == kNoWayOut || needs_[rule.start] == kNoWayOut) return;
    const std::size_t deeper = rule.nesting == Nesting::kDeeper ? 1 : 0;
    if (needs_[rule.start] + deeper <= level_) reach(edge.from);
  }

  const Automaton& automaton_;
  std::vector<Rule> rules_;
  std::size_t level_ = 0;
  std::vector<std::uint8_t> needs_;
  std::vector<StateId> pending_;
  std::vector<CallEdge> next_level_;
  std::vector<std::vector<StateId>> sources_;
  std::vector<std::vector<CallEdge>> calls_back_to_;
  std::vector<std::vector<CallEdge>> calls_of_start_;
};

}  // namespace

bool AutomatonBuilder::has_room() {
  if (accepting_.size() >= kMaxStates ||
      edges_.size() + jumps_.size() + calls_.size() >= kMaxEdges) {
    is_full_ = true;
  }
  return !is_full_;
}

StateId AutomatonBuilder::add_state() {
  if (!has_room() && !accepting_.empty()) return 0;
  accepting_.push_back(0);
  free_.push_back(0);
  return static_cast<StateId>(accepting_.size() - 1);
}

RuleId AutomatonBuilder::add_rule(Nesting nesting) {
  const StateId start = add_state();
  const StateId end = add_state();
  set_accepting(end);
  rules_.push_back({start, end, nesting});
  return static_cast<RuleId>(rules_.size() - 1);
}

void AutomatonBuilder::add_edge(StateId from, Symbol first, Symbol last, StateId to) {
  if (has_room()) edges_.push_back({from, {first, last, to}});
}

void AutomatonBuilder::add_byte(StateId from, char byte, StateId to) {
  add_symbol(from, static_cast<unsigned char>(byte), to);
}

void AutomatonBuilder::add_jump(StateId from, StateId to) {
  if (has_room()) jumps_.push_back({from, to});
}

void AutomatonBuilder::add_call(StateId from, RuleId rule, StateId back) {
  if (has_room()) calls_.push_back({from, {rule, back}});
}

StateId AutomatonBuilder::add_text(StateId from, std::string_view text) {
  for (const char byte : text) {
    const StateId next = add_state();
    add_byte(from, byte, next);
    from = next;
  }
  return from;
}

void AutomatonBuilder::add_text_to(StateId from, std::string_view text, StateId to) {
  if (text.empty()) return add_jump(from, to);
  const StateId last = add_text(from, text.substr(0, text.size() - 1));
  add_byte(last, text.back(), to);
}

Result<Automaton> AutomatonBuilder::finish(RuleId root, std::string_view what) const {
  if (is_full_) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("{} needs an automaton of more than {} states or {} edges; use fewer "
                            "or shorter lists, lengths and patterns",
                            what, kMaxStates, kMaxEdges));
  }
  Automaton out;
  const std::size_t count = accepting_.size();
  out.root_ = root;
  out.rules_ = rules_;
  out.accepting_ = accepting_;
  out.free_ = free_;
  out.edge_starts_ =
      sort_by_state(edges_, count, out.edges_, [](const FromEdge& item) { return item.edge; });
  out.jump_starts_ =
      sort_by_state(jumps_, count, out.jumps_, [](const FromJump& item) { return item.target; });
  out.call_starts_ =
      sort_by_state(calls_, count, out.calls_, [](const FromCall& item) { return item.call; });
  out.need_ = find_needs(out);
  if (out.need(out.root().start) == kNoWayOut) {
    return fail(ErrorCode::kBadRequest,
                fmt::format("no text satisfies {} within {} levels; it contradicts itself or has "
                            "no end",
                            what, kMaxNesting));
  }
  return out;
}

std::vector<std::uint8_t> AutomatonBuilder::find_needs(const Automaton& automaton) const {
  return NeedFinder(automaton, rules_).find();
}

}  // namespace locket::chat
