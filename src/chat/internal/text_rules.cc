#include "chat/internal/text_rules.h"

#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <string_view>

namespace locket::chat {
namespace {

constexpr std::size_t kMaxProductStates = 20'000;

}  // namespace

RuleId TextRules::of_length(const TextLength& length, TextForm form) {
  const auto known = lengths_.find({length, form});
  if (known != lengths_.end()) return known->second;
  const RuleId made = builder_.add_rule(Nesting::kSame);
  lengths_[{length, form}] = made;
  const Rule rule = builder_.rule(made);
  const RuleId character = json_.rule(form == TextForm::kJson ? JsonRules::Shape::kCharacter
                                                              : JsonRules::Shape::kRawCharacter);
  const auto close = [&](StateId from) {
    if (form == TextForm::kJson) {
      builder_.add_byte(from, '"', rule.end);
    } else {
      builder_.add_jump(from, rule.end);
    }
  };
  StateId at = builder_.add_state();
  if (form == TextForm::kJson) {
    builder_.add_byte(rule.start, '"', at);
  } else {
    builder_.add_jump(rule.start, at);
  }
  const std::size_t last = length.max.value_or(length.min);
  for (std::size_t count = 0; count <= last && !builder_.is_full(); ++count) {
    if (count >= length.min) close(at);
    if (count == last) break;
    const StateId next = builder_.add_state();
    builder_.add_call(at, character, next);
    at = next;
  }
  if (!length.max) builder_.add_call(at, character, at);
  return made;
}

// States of a pattern together with the number of characters so far.
struct TextRules::Product {
  using Key = std::pair<std::uint32_t, std::size_t>;

  StateId id_of(AutomatonBuilder& builder, const Key& key) {
    const auto [entry, is_new] = ids.try_emplace(key, 0);
    if (is_new) {
      entry->second = builder.add_state();
      pending.push_back(key);
    }
    return entry->second;
  }

  std::map<Key, StateId> ids;
  std::deque<Key> pending;
};

Result<RuleId> TextRules::of_pattern(const CharAutomaton& pattern, const TextLength& length,
                                     TextForm form) {
  const RuleId made = builder_.add_rule(Nesting::kSame);
  const Rule rule = builder_.rule(made);
  Product product;
  const StateId start = product.id_of(builder_, {pattern.start, 0});
  const StateId close = builder_.add_state();
  if (form == TextForm::kJson) {
    builder_.add_byte(rule.start, '"', start);
    builder_.add_byte(close, '"', rule.end);
  } else {
    builder_.add_jump(rule.start, start);
    builder_.add_jump(close, rule.end);
  }
  while (!product.pending.empty() && !builder_.is_full()) {
    const auto [state, count] = product.pending.front();
    product.pending.pop_front();
    const StateId id = product.ids.at({state, count});
    if (state == pattern.end && count >= length.min) builder_.add_jump(id, close);
    for (const std::uint32_t target : pattern.states[state].jumps) {
      builder_.add_jump(id, product.id_of(builder_, {target, count}));
    }
    if (length.max && count == *length.max) continue;
    const std::size_t next = length.max ? count + 1 : std::min(count + 1, length.min);
    for (const CharAutomaton::Edge& edge : pattern.states[state].edges) {
      add_set(id, pattern.sets[edge.set], form, product.id_of(builder_, {edge.target, next}));
    }
    if (product.ids.size() > kMaxProductStates) {
      return fail(
          ErrorCode::kBadRequest,
          fmt::format("together with its length has more than {} states", kMaxProductStates));
    }
  }
  return made;
}

void TextRules::add_set(StateId from, const CharSet& set, TextForm form, StateId to) {
  if (is_plain_ascii(set)) return add_characters(builder_, from, set, form, to);
  builder_.add_call(from, set_rule(set, form), to);
}

RuleId TextRules::set_rule(const CharSet& set, TextForm form) {
  const auto known = sets_.find({set, form});
  if (known != sets_.end()) return known->second;
  const RuleId made = builder_.add_rule(Nesting::kSame);
  sets_[{set, form}] = made;
  add_characters(builder_, builder_.rule(made).start, set, form, builder_.rule(made).end);
  return made;
}

RuleId TextRules::of_texts(std::vector<std::string> texts) {
  const RuleId made = builder_.add_rule(Nesting::kSame);
  const Rule rule = builder_.rule(made);
  std::map<std::pair<StateId, char>, StateId> children;
  std::sort(texts.begin(), texts.end());
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  for (const std::string& text : texts) {
    if (builder_.is_full()) break;
    StateId at = rule.start;
    for (const char byte : text) {
      const auto [entry, is_new] = children.try_emplace({at, byte}, 0);
      if (is_new) {
        entry->second = builder_.add_state();
        builder_.add_byte(at, byte, entry->second);
      }
      at = entry->second;
    }
    builder_.add_jump(at, rule.end);
  }
  return made;
}

}  // namespace locket::chat
