#include "chat/internal/schema_compiler.h"

#include <fmt/format.h>
#include <string>

#include "base/check.h"
#include "chat/internal/free_text.h"
#include "chat/internal/schema_keywords.h"
#include "chat/json_fields.h"
#include "chat/python_json.h"

namespace locket::chat {
namespace {

using Shape = JsonRules::Shape;

bool is_plain(const TextLength& length) { return length.min == 0 && !length.max; }

}  // namespace

Result<RuleId> SchemaCompiler::compile_root() {
  const RuleId root = value_rule(&reader_.root(), reader_.root_path());
  LOCKET_TRY_STATUS(finish());
  return root;
}

RuleId SchemaCompiler::value_rule(const JsonValue* schema, std::string_view path) {
  if (schema == nullptr) return book_.json.rule(Shape::kAny);
  const auto known = values_.find(schema);
  if (known != values_.end()) return known->second;
  const RuleId rule = book_.builder.add_rule(Nesting::kSame);
  values_[schema] = rule;
  pending_.push_back({schema, std::string(path), rule});
  return rule;
}

Status SchemaCompiler::finish() {
  // A full builder is the caller's to report.
  while (!pending_.empty() && !book_.builder.is_full()) {
    const Pending next = std::move(pending_.front());
    pending_.pop_front();
    LOCKET_TRY_STATUS(fill_value(next));
  }
  return {};
}

Status SchemaCompiler::fill_value(const Pending& pending) {
  LOCKET_TRY(const std::vector<SchemaLeaf> leaves, reader_.leaves(*pending.schema, pending.path));
  const Rule rule = book_.builder.rule(pending.rule);
  for (const SchemaLeaf& leaf : leaves) {
    LOCKET_TRY(const RuleId made, leaf_rule(leaf));
    book_.builder.add_call(rule.start, made, rule.end);
  }
  return {};
}

Result<RuleId> SchemaCompiler::leaf_rule(const SchemaLeaf& leaf) {
  if (leaf.schema == nullptr) return book_.json.rule(Shape::kAny);
  const auto known = leaves_.find({leaf.schema, leaf.type});
  if (known != leaves_.end()) return known->second;
  LOCKET_TRY(const auto values, listed_values(reader_, leaf));
  RuleId rule = 0;
  if (values) {
    std::vector<std::string> texts;
    for (const JsonValue* value : *values) texts.push_back(python_json(*value));
    rule = book_.text.of_texts(std::move(texts));
  } else {
    LOCKET_TRY(rule, plain_leaf_rule(leaf));
  }
  leaves_[{leaf.schema, leaf.type}] = rule;
  return rule;
}

Result<RuleId> SchemaCompiler::plain_leaf_rule(const SchemaLeaf& leaf) {
  switch (leaf.type) {
    case SchemaType::kObject:
      return object_rule(leaf);
    case SchemaType::kArray:
      return array_rule(leaf);
    case SchemaType::kString:
      return string_rule(leaf, TextForm::kJson);
    case SchemaType::kInteger:
    case SchemaType::kNumber:
      return number_rule(leaf);
    case SchemaType::kBoolean:
      return book_.json.rule(Shape::kBoolean);
    case SchemaType::kNull:
      return book_.json.rule(Shape::kNull);
    case SchemaType::kAny:
      return book_.json.rule(Shape::kAny);
    case SchemaType::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

Result<RuleId> SchemaCompiler::string_rule(const SchemaLeaf& leaf, TextForm form) {
  LOCKET_TRY(const TextLength length, text_length(reader_, leaf));
  LOCKET_TRY(const std::optional<CharAutomaton> pattern, text_pattern(reader_, leaf));
  if (pattern) {
    Result<RuleId> rule = book_.text.of_pattern(*pattern, length, form);
    if (rule) return rule;
    LOCKET_TRY_STATUS(reader_.refuse(field_path(leaf.path, "pattern"), rule.error().message));
  }
  if (form == TextForm::kJson && is_plain(length)) return book_.json.rule(Shape::kString);
  return book_.text.of_length(length, form);
}

Result<RuleId> SchemaCompiler::number_rule(const SchemaLeaf& leaf) {
  const bool is_integer = leaf.type == SchemaType::kInteger;
  LOCKET_TRY(const std::optional<NumberLimits> limits, number_limits(reader_, leaf));
  if (limits) {
    Result<RuleId> rule = add_number_range(book_.builder, *limits);
    if (rule) return rule;
    LOCKET_TRY_STATUS(reader_.refuse(leaf.path, rule.error().message));
  }
  return book_.json.rule(is_integer ? Shape::kInteger : Shape::kNumber);
}

Result<RuleId> SchemaCompiler::array_rule(const SchemaLeaf& leaf) {
  LOCKET_TRY(const std::optional<std::size_t> min, reader_.count(leaf, "minItems"));
  LOCKET_TRY(const std::optional<std::size_t> max, reader_.count(leaf, "maxItems"));
  const RuleId item = value_rule(leaf.find("items"), field_path(leaf.path, "items"));
  const RuleId made = book_.builder.add_rule(Nesting::kDeeper);
  const Rule rule = book_.builder.rule(made);
  const StateId open = book_.builder.add_state();
  book_.builder.add_byte(rule.start, '[', open);
  if (min.value_or(0) == 0 && !max) {
    book_.json.add_items(open, item, rule.end);
  } else {
    add_counted_items(item, {min.value_or(0), max}, open, rule.end);
  }
  return made;
}

void SchemaCompiler::add_counted_items(RuleId item, const TextLength& count, StateId open,
                                       StateId end) {
  AutomatonBuilder& builder = book_.builder;
  const StateId close = builder.add_state();
  builder.add_byte(close, ']', end);
  StateId before = builder.add_state();
  book_.json.add(open, Shape::kBlank, before);
  if (count.min == 0) builder.add_byte(before, ']', end);
  const std::size_t last = count.max.value_or(std::max<std::size_t>(count.min, 1));
  for (std::size_t at = 1; at <= last && !builder.is_full(); ++at) {
    const StateId behind = builder.add_state();
    const StateId comma = builder.add_state();
    const StateId next = builder.add_state();
    builder.add_call(before, item, behind);
    if (at >= count.min) book_.json.add(behind, Shape::kBlank, close);
    const bool is_last = at == last;
    if (is_last && count.max) break;
    builder.add_byte(behind, ',', comma);
    book_.json.add(comma, Shape::kBlank, next);
    if (is_last) builder.add_call(next, item, behind);
    before = next;
  }
}

Result<RuleId> SchemaCompiler::object_rule(const SchemaLeaf& leaf) {
  LOCKET_TRY(const ObjectShape shape, reader_.object_shape(leaf));
  if (shape.members.empty() && shape.allows_others && shape.others == nullptr) {
    return book_.json.rule(Shape::kAnyObject);
  }
  const RuleId made = book_.builder.add_rule(Nesting::kDeeper);
  const Rule rule = book_.builder.rule(made);
  const StateId open = book_.builder.add_state();
  book_.builder.add_byte(rule.start, '{', open);
  add_members(shape, open, rule.end);
  return made;
}

// Two chains of states, one for nothing written yet and one for behind a member, which has a comma.
void SchemaCompiler::add_members(const ObjectShape& shape, StateId open, StateId end) {
  AutomatonBuilder& builder = book_.builder;
  StateId first = builder.add_state();
  book_.json.add(open, Shape::kBlank, first);
  std::optional<StateId> behind;
  const auto enter = [&](StateId name) {
    builder.add_jump(first, name);
    if (!behind) return;
    const StateId comma = builder.add_state();
    builder.add_byte(*behind, ',', comma);
    book_.json.add(comma, Shape::kBlank, name);
  };
  const auto add_value = [&](StateId colon, RuleId value, StateId to) {
    const StateId start = builder.add_state();
    book_.json.add(colon, Shape::kBlank, start);
    builder.add_call(start, value, to);
  };
  for (const ObjectShape::Member& member : shape.members) {
    if (builder.is_full()) return;
    std::string key = "\"";
    append_escaped(member.name, key);
    const StateId name = builder.add_state();
    enter(name);
    const StateId next = builder.add_state();
    add_value(builder.add_text(name, key + "\":"), value_rule(member.schema, member.path), next);
    const StateId next_first = builder.add_state();
    if (!member.is_required) {
      builder.add_jump(first, next_first);
      if (behind) builder.add_jump(*behind, next);
    }
    first = next_first;
    behind = next;
  }
  if (shape.allows_others) {
    std::vector<std::string_view> names;
    for (const ObjectShape::Member& member : shape.members) names.push_back(member.name);
    const StateId name = builder.add_state();
    const StateId next = builder.add_state();
    enter(name);
    if (behind) builder.add_jump(*behind, next);
    behind = next;
    const StateId comma = builder.add_state();
    builder.add_byte(next, ',', comma);
    book_.json.add(comma, Shape::kBlank, name);
    const StateId named = builder.add_state();
    const StateId colon = builder.add_state();
    builder.add_call(name, add_other_name(builder, names), named);
    builder.add_byte(named, ':', colon);
    add_value(colon, value_rule(shape.others, shape.others_path), next);
  }
  builder.add_byte(first, '}', end);
  if (!behind) return;
  const StateId close = builder.add_state();
  book_.json.add(*behind, Shape::kBlank, close);
  builder.add_byte(close, '}', end);
}

Result<ParameterRules> SchemaCompiler::compile_parameter(const JsonValue* schema,
                                                         std::string_view path) {
  ParameterRules out;
  std::vector<SchemaLeaf> leaves = {{nullptr, SchemaType::kAny, std::string(path)}};
  if (schema != nullptr) {
    LOCKET_TRY(leaves, reader_.leaves(*schema, path));
  }
  for (const SchemaLeaf& leaf : leaves) {
    if (leaf.type == SchemaType::kString || leaf.type == SchemaType::kAny) {
      LOCKET_TRY_STATUS(add_text_leaf(leaf, out));
      continue;
    }
    LOCKET_TRY(const RuleId rule, leaf_rule(leaf));
    out.values.push_back(rule);
  }
  LOCKET_TRY_STATUS(finish());
  return out;
}

Status SchemaCompiler::add_text_leaf(const SchemaLeaf& leaf, ParameterRules& out) {
  LOCKET_TRY(const auto values, listed_values(reader_, leaf));
  if (!values && leaf.type == SchemaType::kAny) {
    out.allows_any_text = true;
    out.values.push_back(book_.json.rule(Shape::kAnyButString));
    return {};
  }
  if (!values) {
    LOCKET_TRY(const TextLength length, text_length(reader_, leaf));
    const bool has_pattern = leaf.find("pattern") != nullptr || leaf.find("format") != nullptr;
    if (!has_pattern && is_plain(length)) {
      out.allows_any_text = true;
      return {};
    }
    LOCKET_TRY(const RuleId rule, string_rule(leaf, TextForm::kRaw));
    out.texts.push_back(rule);
    return {};
  }
  std::vector<std::string> texts;
  std::vector<std::string> others;
  for (const JsonValue* value : *values) {
    if (value->is_string()) {
      texts.push_back(value->text);
    } else {
      others.push_back(python_json(*value));
    }
  }
  if (!texts.empty()) out.texts.push_back(book_.text.of_texts(std::move(texts)));
  if (!others.empty()) out.values.push_back(book_.text.of_texts(std::move(others)));
  return {};
}

}  // namespace locket::chat
