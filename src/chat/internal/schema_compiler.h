// Compiles a JSON schema to rules of an automaton: which texts are JSON and fit it. Members come in
// the order of the schema, each at most once; optional ones may be left out.
//
// Every rule for a schema is made once; schemas may refer to themselves. Work and memory are
// bounded by the builder's limits. Not thread-safe; everything it is given must outlive it.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/internal/json_rules.h"
#include "chat/internal/schema_reader.h"
#include "chat/internal/text_rules.h"

namespace locket::chat {

// The builder and the rules that every schema of a grammar shares.
struct RuleBook {
  AutomatonBuilder builder;
  JsonRules json{builder};
  TextRules text{builder, json};
};

// The ways to write the value of a parameter.
struct ParameterRules {
  bool allows_any_text = false;
  std::vector<RuleId> texts;   // raw strings
  std::vector<RuleId> values;  // JSON of everything else
};

class SchemaCompiler {
 public:
  SchemaCompiler(RuleBook& book, const SchemaReader& reader) : book_(book), reader_(reader) {}

  // The rule of the whole schema. kBadRequest names the place, the keyword and the rule.
  [[nodiscard]] Result<RuleId> compile_root();

  // `schema` is a part of the reader's; nullptr: anything.
  [[nodiscard]] Result<ParameterRules> compile_parameter(const JsonValue* schema,
                                                         std::string_view path);

  // The rule of any part of the reader's schema, which finish() fills. nullptr: anything.
  RuleId value_rule(const JsonValue* schema, std::string_view path);
  [[nodiscard]] Status finish();

 private:
  struct Pending {
    const JsonValue* schema = nullptr;
    std::string path;
    RuleId rule = 0;
  };

  Status fill_value(const Pending& pending);
  Result<RuleId> leaf_rule(const SchemaLeaf& leaf);
  Result<RuleId> plain_leaf_rule(const SchemaLeaf& leaf);
  Result<RuleId> object_rule(const SchemaLeaf& leaf);
  Result<RuleId> array_rule(const SchemaLeaf& leaf);
  Result<RuleId> string_rule(const SchemaLeaf& leaf, TextForm form);
  Result<RuleId> number_rule(const SchemaLeaf& leaf);
  Status add_text_leaf(const SchemaLeaf& leaf, ParameterRules& out);

  void add_members(const ObjectShape& shape, StateId open, StateId end);
  void add_counted_items(RuleId item, const TextLength& count, StateId open, StateId end);

  RuleBook& book_;
  const SchemaReader& reader_;
  std::map<const JsonValue*, RuleId> values_;
  std::map<std::pair<const JsonValue*, SchemaType>, RuleId> leaves_;
  std::deque<Pending> pending_;
};

}  // namespace locket::chat
