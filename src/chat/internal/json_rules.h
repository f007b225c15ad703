// The rules of JSON that every schema shares: blanks, strings, numbers, any value. Each is made
// when it is first asked for.
//
// Blanks stand behind `{` `[` `,` `:` and before `}` `]` only: nothing, one space, or one newline
// with up to kMaxIndent spaces, so that a run of blanks always ends. Digits are bounded for the
// same reason.
//
// Not thread-safe. The builder must outlive this.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "chat/internal/byte_automaton.h"
#include "chat/internal/char_set.h"

namespace locket::chat {

class JsonRules {
 public:
  static constexpr std::size_t kMaxIndent = 64;
  static constexpr std::size_t kMaxIntegerDigits = 40;
  static constexpr std::size_t kMaxFractionDigits = 40;

  explicit JsonRules(AutomatonBuilder& builder) : builder_(builder) {}

  enum class Shape {
    kBlank,
    kCharacter,     // one character of a JSON string, in any spelling
    kRawCharacter,  // one character between tags
    kString,        // with its quotes
    kInteger,
    kNumber,
    kBoolean,
    kNull,
    kAny,
    kAnyButString,
    kAnyObject,
    kAnyArray,
    kCount
  };

  RuleId rule(Shape shape);

  // A `shape` leads from `from` to `to`.
  void add(StateId from, Shape shape, StateId to) { builder_.add_call(from, rule(shape), to); }

  // `value` between blanks and brackets, separated by commas: the inside of a list that may be
  // empty. The bracket that opens leads to `from`.
  void add_items(StateId from, RuleId value, StateId end);

 private:
  void fill(Shape shape, Rule rule);
  void fill_blank(const Rule& rule);
  void fill_string(const Rule& rule);
  StateId fill_integer(const Rule& rule);
  void fill_number(const Rule& rule);
  void fill_object(const Rule& rule);
  void fill_choice(const Rule& rule, std::initializer_list<Shape> shapes);

  AutomatonBuilder& builder_;
  std::array<std::optional<RuleId>, static_cast<std::size_t>(Shape::kCount)> rules_;
};

}  // namespace locket::chat
