#include "chat/internal/free_text.h"

#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/check.h"
#include "chat/internal/state_explorer.h"
#include "chat/internal/utf8_step.h"

namespace locket::chat {
namespace {

constexpr std::size_t kMaxTextStates = 100'000;

// A position in the spellings of several texts: what of them has come so far.
class SpellingTree {
 public:
  static constexpr std::size_t kRoot = 0;

  SpellingTree() { nodes_.emplace_back(); }

  void add(std::string_view spelling, std::size_t owner) {
    std::size_t node = kRoot;
    for (const char byte : spelling) {
      const auto [entry, is_new] =
          nodes_[node].children.try_emplace(static_cast<unsigned char>(byte), nodes_.size());
      node = entry->second;
      if (is_new) nodes_.emplace_back();
    }
    nodes_[node].owner = owner;
  }

  std::optional<std::size_t> child(std::size_t node, unsigned char byte) const {
    const auto found = nodes_[node].children.find(byte);
    return found == nodes_[node].children.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<std::size_t> owner(std::size_t node) const { return nodes_[node].owner; }

  std::size_t find(std::string_view text) const {
    std::size_t node = kRoot;
    for (const char byte : text) node = *child(node, static_cast<unsigned char>(byte));
    return node;
  }

 private:
  struct Node {
    std::map<unsigned char, std::size_t> children;
    std::optional<std::size_t> owner;  // whose spelling ends here
  };
  std::vector<Node> nodes_;
};

struct TextState {
  std::size_t node = SpellingTree::kRoot;
  Utf8Place place = Utf8Place::kBetween;
  bool is_out = false;  // at the exit of the node's mark

  friend bool operator<(const TextState& one, const TextState& other) {
    return std::tie(one.node, one.place, one.is_out) <
           std::tie(other.node, other.place, other.is_out);
  }
};

struct NameState {
  std::optional<std::size_t> node = SpellingTree::kRoot;  // none: no name begins so
  Utf8Place place = Utf8Place::kBetween;

  friend bool operator<(const NameState& one, const NameState& other) {
    return std::tie(one.node, one.place) < std::tie(other.node, other.place);
  }
};

}  // namespace

StateId add_free_text(AutomatonBuilder& builder, const FreeText& text) {
  SpellingTree tree;
  for (std::size_t index = 0; index < text.marks.size(); ++index) {
    tree.add(text.marks[index].spelling, index);
  }
  const auto step = [&](const TextState& state, unsigned char byte) -> std::optional<TextState> {
    if (state.is_out || byte == 0) return std::nullopt;
    const std::optional<Utf8Place> place = utf8_step(state.place, byte);
    if (!place) return std::nullopt;
    std::optional<std::size_t> node = tree.child(state.node, byte);
    if (!node) node = tree.child(SpellingTree::kRoot, byte);
    if (!node) return TextState{SpellingTree::kRoot, *place, false};
    const std::optional<std::size_t> mark = tree.owner(*node);
    if (!mark) return TextState{*node, *place, false};
    if (!text.marks[*mark].may_be_plain) return std::nullopt;
    return TextState{*node, Utf8Place::kBetween, true};
  };
  std::optional<StateId> root;
  const auto visit = [&](const TextState& state, StateId id) {
    if (!root) root = id;
    if (state.is_out) {
      const TextMark& mark = text.marks[*tree.owner(state.node)];
      if (mark.exit) builder.add_jump(id, *mark.exit);
      return;
    }
    if (state.place != Utf8Place::kBetween) return;
    if (text.end == TextEnd::kAnywhere) builder.set_accepting(id);
    for (const TextMark& mark : text.marks) {
      if (!mark.exit) continue;
      const std::string_view lead = mark.spelling.substr(0, mark.lead_bytes);
      if (!lead.empty() && tree.find(lead) != state.node) continue;
      builder.add_symbol(id, mark.symbol, *mark.exit);
    }
    if (text.controls == OtherControls::kAllow) {
      builder.add_symbol(id, kOtherControlSymbol, *root);
    }
  };
  const std::optional<StateId> start =
      explore_states(builder, TextState{}, {}, kMaxTextStates, step, visit);
  return start.value_or(0);
}

RuleId add_other_name(AutomatonBuilder& builder, std::span<const std::string_view> names) {
  SpellingTree tree;
  for (const std::string_view name : names) tree.add(name, 0);
  const RuleId rule = builder.add_rule(Nesting::kSame);
  const auto step = [&](const NameState& state, unsigned char byte) -> std::optional<NameState> {
    if (byte < 0x20 || byte == '"' || byte == '\\') return std::nullopt;
    const std::optional<Utf8Place> place = utf8_step(state.place, byte);
    if (!place) return std::nullopt;
    return NameState{state.node ? tree.child(*state.node, byte) : std::nullopt, *place};
  };
  const StateId end = builder.rule(rule).end;
  const auto visit = [&](const NameState& state, StateId id) {
    const bool is_taken = state.node && tree.owner(*state.node);
    if (state.place == Utf8Place::kBetween && !is_taken) builder.add_byte(id, '"', end);
  };
  const std::optional<StateId> start =
      explore_states(builder, NameState{}, {}, kMaxTextStates, step, visit);
  if (start) builder.add_byte(builder.rule(rule).start, '"', *start);
  return rule;
}

}  // namespace locket::chat
