// Rules for call blocks: the markup, the names of the tools and their parameters as their schemas
// say. Parameters come in the order of the schema, each at most once.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "chat/internal/schema_compiler.h"
#include "chat/markup.h"
#include "chat/message.h"

namespace locket::chat {

enum class CallCount { kOne, kAny, kCount };

// What of a call of a tool is bound.
enum class ToolBinding { kSchema, kName, kCount };

// Adds rules for calls to the book. Not thread-safe; the book must outlive it.
class CallGrammar {
 public:
  CallGrammar(RuleBook& book, Markup markup) : book_(book), spelling_(spelling_of(markup)) {}

  // A tool that may be called. kBadRequest where a strict tool's schema is not understood or holds
  // a name that markup cannot; of a loose tool such parts are free. `path` names the tool.
  [[nodiscard]] Status add_tool(const Tool& tool, std::string_view path, ToolBinding binding);

  // From behind the tag that opens the block, and its newline, to behind the block. REQUIRES: a
  // tool was added.
  RuleId inside(CallCount count);
  // From behind `<｜DSML｜` to behind the block.
  RuleId behind_tag_open(CallCount count);

 private:
  Result<RuleId> arguments_rule(const Tool& tool, std::string_view path);
  RuleId any_arguments_rule();
  Result<RuleId> compile_arguments(const JsonValue& parameters, std::string_view path,
                                   Strictness strictness);
  Status add_parameters(SchemaCompiler& compiler, const ObjectShape& shape, Strictness strictness,
                        Rule rule);
  void add_any_parameters(StateId from, StateId to);
  void add_value(const ParameterRules& rules, StateId from, StateId to);
  StateId add_tag(StateId from, std::string_view open, std::string_view rest);
  // What stands between the control token of a tag and the rest.
  std::string with_gap(std::string_view rest) const;
  void add_parameter_end(StateId from, StateId to);
  RuleId any_text();

  RuleBook& book_;
  const MarkupSpelling& spelling_;
  std::vector<std::pair<std::string, RuleId>> tools_;  // name, arguments
  std::optional<RuleId> any_text_;
};

}  // namespace locket::chat
