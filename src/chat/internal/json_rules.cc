#include "chat/internal/json_rules.h"

#include "base/check.h"

namespace locket::chat {

RuleId JsonRules::rule(Shape shape) {
  std::optional<RuleId>& known = rules_[static_cast<std::size_t>(shape)];
  if (known) return *known;
  const bool nests = shape == Shape::kAnyObject || shape == Shape::kAnyArray;
  const RuleId made = builder_.add_rule(nests ? Nesting::kDeeper : Nesting::kSame);
  known = made;
  fill(shape, builder_.rule(made));
  return made;
}

void JsonRules::fill(Shape shape, Rule rule) {
  switch (shape) {
    case Shape::kBlank:
      return fill_blank(rule);
    case Shape::kCharacter:
      return add_any_json_character(builder_, rule.start, rule.end);
    case Shape::kRawCharacter:
      return add_characters(builder_, rule.start, CharSet::all(), TextForm::kRaw, rule.end);
    case Shape::kString:
      return fill_string(rule);
    case Shape::kInteger:
      builder_.set_accepting(fill_integer(rule));
      return;
    case Shape::kNumber:
      return fill_number(rule);
    case Shape::kBoolean:
      builder_.add_text_to(rule.start, "true", rule.end);
      return builder_.add_text_to(rule.start, "false", rule.end);
    case Shape::kNull:
      return builder_.add_text_to(rule.start, "null", rule.end);
    case Shape::kAny:
      return fill_choice(rule, {Shape::kString, Shape::kAnyButString});
    case Shape::kAnyButString:
      return fill_choice(rule, {Shape::kNumber, Shape::kBoolean, Shape::kNull, Shape::kAnyObject,
                                Shape::kAnyArray});
    case Shape::kAnyObject:
      return fill_object(rule);
    case Shape::kAnyArray: {
      const StateId inside = builder_.add_state();
      builder_.add_byte(rule.start, '[', inside);
      return add_items(inside, this->rule(Shape::kAny), rule.end);
    }
    case Shape::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

void JsonRules::fill_choice(const Rule& rule, std::initializer_list<Shape> shapes) {
  for (const Shape shape : shapes) add(rule.start, shape, rule.end);
}

void JsonRules::fill_blank(const Rule& rule) {
  builder_.set_accepting(rule.start);
  builder_.add_byte(rule.start, ' ', rule.end);
  StateId line = builder_.add_state();
  builder_.add_byte(rule.start, '\n', line);
  builder_.set_accepting(line);
  for (std::size_t indent = 0; indent < kMaxIndent; ++indent) {
    const StateId next = builder_.add_state();
    builder_.set_accepting(next);
    builder_.add_byte(line, ' ', next);
    line = next;
  }
}

void JsonRules::fill_string(const Rule& rule) {
  const StateId inside = builder_.add_state();
  builder_.add_byte(rule.start, '"', inside);
  add_any_json_character(builder_, inside, inside);
  builder_.add_byte(inside, '"', rule.end);
}

// Returns the state to which all integers lead by a jump.
StateId JsonRules::fill_integer(const Rule& rule) {
  const StateId whole = builder_.add_state();
  const StateId first = builder_.add_state();
  builder_.add_byte(rule.start, '-', first);
  builder_.add_jump(rule.start, first);
  builder_.add_byte(first, '0', whole);
  StateId digits = builder_.add_state();
  builder_.add_edge(first, '1', '9', digits);
  for (std::size_t count = 1; count < kMaxIntegerDigits; ++count) {
    const StateId next = builder_.add_state();
    builder_.add_jump(digits, whole);
    builder_.add_edge(digits, '0', '9', next);
    digits = next;
  }
  builder_.add_jump(digits, whole);
  return whole;
}

void JsonRules::fill_number(const Rule& rule) {
  const StateId whole = fill_integer(rule);
  const StateId exponent = builder_.add_state();
  builder_.set_accepting(whole);
  builder_.add_jump(whole, exponent);
  StateId digits = builder_.add_state();
  builder_.add_byte(whole, '.', digits);
  for (std::size_t count = 0; count < kMaxFractionDigits; ++count) {
    const StateId next = builder_.add_state();
    builder_.add_edge(digits, '0', '9', next);
    builder_.set_accepting(next);
    builder_.add_jump(next, exponent);
    digits = next;
  }
  const StateId sign = builder_.add_state();
  const StateId one = builder_.add_state();
  const StateId two = builder_.add_state();
  builder_.add_byte(exponent, 'e', sign);
  builder_.add_byte(exponent, 'E', sign);
  builder_.add_byte(sign, '+', one);
  builder_.add_byte(sign, '-', one);
  builder_.add_jump(sign, one);
  builder_.add_edge(one, '0', '9', two);
  builder_.set_accepting(two);
  builder_.add_edge(two, '0', '9', rule.end);
}

void JsonRules::add_items(StateId from, RuleId value, StateId end) {
  const StateId first = builder_.add_state();
  const StateId behind = builder_.add_state();
  const StateId comma = builder_.add_state();
  const StateId next = builder_.add_state();
  const StateId last = builder_.add_state();
  add(from, Shape::kBlank, first);
  builder_.add_byte(first, ']', end);
  builder_.add_call(first, value, behind);
  builder_.add_byte(behind, ',', comma);
  add(comma, Shape::kBlank, next);
  builder_.add_call(next, value, behind);
  add(behind, Shape::kBlank, last);
  builder_.add_byte(last, ']', end);
}

void JsonRules::fill_object(const Rule& rule) {
  const StateId open = builder_.add_state();
  const StateId first = builder_.add_state();
  const StateId named = builder_.add_state();
  const StateId colon = builder_.add_state();
  const StateId value = builder_.add_state();
  const StateId behind = builder_.add_state();
  const StateId comma = builder_.add_state();
  const StateId next = builder_.add_state();
  const StateId last = builder_.add_state();
  builder_.add_byte(rule.start, '{', open);
  add(open, Shape::kBlank, first);
  builder_.add_byte(first, '}', rule.end);
  add(first, Shape::kString, named);
  builder_.add_byte(named, ':', colon);
  add(colon, Shape::kBlank, value);
  add(value, Shape::kAny, behind);
  builder_.add_byte(behind, ',', comma);
  add(comma, Shape::kBlank, next);
  add(next, Shape::kString, named);
  add(behind, Shape::kBlank, last);
  builder_.add_byte(last, '}', rule.end);
}

}  // namespace locket::chat
