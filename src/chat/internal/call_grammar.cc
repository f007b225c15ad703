#include "chat/internal/call_grammar.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "chat/internal/free_text.h"
#include "chat/json_fields.h"
#include "chat/json_reader.h"

namespace locket::chat {
namespace {

constexpr std::string_view kOpen = "<";
constexpr std::string_view kClose = "</";

// Names are written raw and copied into JSON by the parser of calls.
bool is_writable_name(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char byte) {
    return static_cast<unsigned char>(byte) >= 0x20 && byte != '"' && byte != '\\' && byte != '<';
  });
}

}  // namespace

Status CallGrammar::add_tool(const Tool& tool, std::string_view path, ToolBinding binding) {
  if (binding == ToolBinding::kName) {
    tools_.emplace_back(tool.name, any_arguments_rule());
    return {};
  }
  LOCKET_TRY(const RuleId arguments, arguments_rule(tool, path));
  tools_.emplace_back(tool.name, arguments);
  return {};
}

Result<RuleId> CallGrammar::arguments_rule(const Tool& tool, std::string_view path) {
  const std::string parameters_path = field_path(path, "parameters");
  LOCKET_TRY(const JsonValue parameters, read_json(tool.parameters, parameters_path));
  if (tool.is_strict) {
    return compile_arguments(parameters, parameters_path, Strictness::kStrict);
  }
  Result<RuleId> loose = compile_arguments(parameters, parameters_path, Strictness::kLoose);
  return loose ? *loose : any_arguments_rule();
}

RuleId CallGrammar::any_arguments_rule() {
  const RuleId rule = book_.builder.add_rule(Nesting::kDeeper);
  add_any_parameters(book_.builder.rule(rule).start, book_.builder.rule(rule).end);
  return rule;
}

Result<RuleId> CallGrammar::compile_arguments(const JsonValue& parameters, std::string_view path,
                                              Strictness strictness) {
  const SchemaReader reader(parameters, std::string(path), strictness);
  SchemaCompiler compiler(book_, reader);
  const RuleId rule = book_.builder.add_rule(Nesting::kDeeper);
  // No schema at all means no parameters.
  if (parameters.is_object() && parameters.members.empty()) {
    book_.builder.add_jump(book_.builder.rule(rule).start, book_.builder.rule(rule).end);
    return rule;
  }
  LOCKET_TRY(const std::vector<SchemaLeaf> leaves, reader.leaves(parameters, path));
  for (const SchemaLeaf& leaf : leaves) {
    if (leaf.type != SchemaType::kObject) {
      LOCKET_TRY_STATUS(reader.refuse(leaf.path, "is not an object, which parameters must be"));
      continue;
    }
    LOCKET_TRY(ObjectShape shape, reader.object_shape(leaf));
    // Nor does an empty list of properties promise others.
    if (leaf.find("additionalProperties") == nullptr) shape.allows_others = false;
    LOCKET_TRY_STATUS(add_parameters(compiler, shape, strictness, book_.builder.rule(rule)));
  }
  return rule;
}

// As members of an object, with a newline for a comma.
Status CallGrammar::add_parameters(SchemaCompiler& compiler, const ObjectShape& shape,
                                   Strictness strictness, Rule rule) {
  AutomatonBuilder& builder = book_.builder;
  StateId first = rule.start;
  std::optional<StateId> behind;
  const auto enter = [&](StateId tag) {
    builder.add_jump(first, tag);
    if (behind) builder.add_byte(*behind, '\n', tag);
  };
  for (const ObjectShape::Member& member : shape.members) {
    if (builder.is_full()) return {};
    if (!is_writable_name(member.name)) {
      if (strictness == Strictness::kLoose) continue;
      return wrong_value(member.path, json_string(std::string(member.name)),
                         "a name without quotes, backslashes, < and control characters");
    }
    LOCKET_TRY(const ParameterRules rules, compiler.compile_parameter(member.schema, member.path));
    const StateId tag = builder.add_state();
    enter(tag);
    const StateId next = builder.add_state();
    const std::string head = fmt::format("parameter name=\"{}\"", member.name);
    add_value(rules, add_tag(tag, kOpen, head), next);
    const StateId next_first = builder.add_state();
    if (!member.is_required) {
      builder.add_jump(first, next_first);
      if (behind) builder.add_jump(*behind, next);
    }
    first = next_first;
    behind = next;
  }
  if (shape.allows_others) {
    const StateId others = builder.add_state();
    enter(others);
    std::vector<std::string_view> names;
    for (const ObjectShape::Member& member : shape.members) names.push_back(member.name);
    LOCKET_TRY(const ParameterRules rules,
               compiler.compile_parameter(shape.others, shape.others_path));
    const StateId named = builder.add_state();
    const StateId next = builder.add_state();
    builder.add_call(add_tag(others, kOpen, "parameter name="), add_other_name(builder, names),
                     named);
    add_value(rules, named, next);
    builder.add_byte(next, '\n', others);
    builder.add_jump(next, rule.end);
  }
  builder.add_jump(first, rule.end);
  if (behind) builder.add_jump(*behind, rule.end);
  return {};
}

void CallGrammar::add_any_parameters(StateId from, StateId to) {
  AutomatonBuilder& builder = book_.builder;
  ParameterRules rules;
  rules.allows_any_text = true;
  rules.values.push_back(book_.json.rule(JsonRules::Shape::kAnyButString));
  const StateId tag = builder.add_state();
  const StateId named = builder.add_state();
  const StateId behind = builder.add_state();
  builder.add_jump(from, to);
  builder.add_jump(from, tag);
  builder.add_call(add_tag(tag, kOpen, "parameter name="), add_other_name(builder, {}), named);
  add_value(rules, named, behind);
  builder.add_byte(behind, '\n', tag);
  builder.add_jump(behind, to);
}

std::string CallGrammar::with_gap(std::string_view rest) const {
  return fmt::format("{}{}", spelling_.gap, rest);
}

// `open`, the control token and `rest`.
StateId CallGrammar::add_tag(StateId from, std::string_view open, std::string_view rest) {
  const StateId opened = book_.builder.add_text(from, open);
  const StateId marked = book_.builder.add_state();
  book_.builder.add_symbol(opened, kDsmlSymbol, marked);
  return book_.builder.add_text(marked, with_gap(rest));
}

void CallGrammar::add_parameter_end(StateId from, StateId to) {
  book_.builder.add_jump(add_tag(from, kClose, "parameter>"), to);
}

// From behind the name to behind the closing tag.
void CallGrammar::add_value(const ParameterRules& rules, StateId from, StateId to) {
  AutomatonBuilder& builder = book_.builder;
  if (rules.allows_any_text || !rules.texts.empty()) {
    const StateId text = builder.add_text(from, " string=\"true\">");
    if (rules.allows_any_text) builder.add_call(text, any_text(), to);
    const StateId behind = builder.add_state();
    for (const RuleId rule : rules.texts) builder.add_call(text, rule, behind);
    if (!rules.texts.empty()) add_parameter_end(behind, to);
  }
  if (rules.values.empty()) return;
  const StateId value = builder.add_text(from, " string=\"false\">");
  const StateId behind = builder.add_state();
  for (const RuleId rule : rules.values) builder.add_call(value, rule, behind);
  add_parameter_end(behind, to);
}

// Text up to its closing tag, and the tag.
RuleId CallGrammar::any_text() {
  if (any_text_) return *any_text_;
  AutomatonBuilder& builder = book_.builder;
  any_text_ = builder.add_rule(Nesting::kSame);
  const Rule rule = builder.rule(*any_text_);
  const StateId closed = builder.add_state();
  builder.add_text_to(closed, with_gap("parameter>"), rule.end);
  const TextMark marks[] = {{kTagClose, kClose.size(), kDsmlSymbol, closed, false}};
  builder.add_jump(rule.start,
                   add_free_text(builder, {marks, TextEnd::kNotHere, OtherControls::kRefuse}));
  return *any_text_;
}

RuleId CallGrammar::inside(CallCount count) {
  AutomatonBuilder& builder = book_.builder;
  const RuleId made = builder.add_rule(Nesting::kSame);
  const Rule rule = builder.rule(made);
  const StateId behind = builder.add_state();  // behind a call's newline
  const StateId tag = add_tag(rule.start, kOpen, "invoke name=\"");
  const StateId name_end = builder.add_state();
  const RuleId invoke_end = builder.add_rule(Nesting::kSame);
  builder.add_jump(add_tag(builder.rule(invoke_end).start, "\n</", "invoke>\n"),
                   builder.rule(invoke_end).end);
  for (const auto& [name, arguments] : tools_) {
    const StateId open = builder.add_text(tag, name + "\">\n");
    builder.add_call(open, arguments, name_end);
  }
  builder.add_call(name_end, invoke_end, behind);
  if (count == CallCount::kAny) builder.add_jump(behind, rule.start);
  builder.add_jump(add_tag(behind, kClose, fmt::format("{}>", spelling_.block)), rule.end);
  return made;
}

RuleId CallGrammar::behind_tag_open(CallCount count) {
  AutomatonBuilder& builder = book_.builder;
  const RuleId made = builder.add_rule(Nesting::kSame);
  const std::string rest = with_gap(fmt::format("{}>\n", spelling_.block));
  builder.add_call(builder.add_text(builder.rule(made).start, rest), inside(count),
                   builder.rule(made).end);
  return made;
}

}  // namespace locket::chat
