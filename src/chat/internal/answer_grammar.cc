#include "chat/internal/answer_grammar.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>
#include <vector>

#include "base/check.h"
#include "chat/internal/call_grammar.h"
#include "chat/internal/free_text.h"
#include "chat/json_fields.h"
#include "chat/json_reader.h"
#include "chat/markup.h"

namespace locket::chat {
namespace {

constexpr std::string_view kSchemaPath = "response_format.json_schema.schema";
constexpr std::size_t kMaxLeadingNewlines = 2;

bool begins_in_reasoning(const ParserStart& start) {
  return start.start == ReplyStart::kReasoning || start.start == ReplyStart::kReasoningContinued;
}

Status check_schema_size(std::string_view schema, std::string_view path) {
  if (schema.size() <= kMaxSchemaBytes) return {};
  return fail(ErrorCode::kBadRequest, fmt::format("{} has {} bytes; at most {} are allowed", path,
                                                  schema.size(), kMaxSchemaBytes));
}

// What tools whose schema binds nobody contribute to the grammar.
enum class LooseTools { kBySchema, kFree, kCount };

class AnswerCompiler {
 public:
  AnswerCompiler(const ChatRequest& request, const ParserStart& start, LooseTools loose_tools)
      : request_(request),
        start_(start),
        loose_tools_(loose_tools),
        is_forced_(has_forced_call(request)),
        shows_tools_(has_visible_tools(request) && start.tool_calls),
        has_format_(request.response_format.kind != ResponseFormat::Kind::kText) {}

  bool binds_nothing() const { return !is_forced_ && !has_format_ && !binds_tools(); }

  Result<Automaton> compile() {
    const RuleId root = book_.builder.add_rule(Nesting::kSame);
    const Rule rule = book_.builder.rule(root);
    if (binds_tools()) LOCKET_TRY_STATUS(add_tools());
    if (start_.start == ReplyStart::kCalls) {
      book_.builder.add_call(rule.start, calls_.inside(call_count()), rule.end);
      return book_.builder.finish(root, "tools");
    }
    const StateId answer = book_.builder.add_state();
    LOCKET_TRY_STATUS(add_answer(answer, rule.end));
    book_.builder.add_jump(rule.start,
                           begins_in_reasoning(start_) ? add_reasoning(answer, rule.end) : answer);
    return book_.builder.finish(root, has_format_ && !is_forced_ ? kSchemaPath : "tools");
  }

 private:
  bool binds_tools() const {
    const bool has_strict = std::any_of(request_.tools.begin(), request_.tools.end(),
                                        [](const Tool& tool) { return tool.is_strict; });
    return shows_tools_ && (is_forced_ || has_strict);
  }

  CallCount call_count() const {
    const bool is_named = request_.tool_choice.kind == ToolChoice::Kind::kNamed;
    return is_named ? CallCount::kOne : CallCount::kAny;
  }

  Status add_tools() {
    std::size_t count = 0;
    for (std::size_t index = 0; index < request_.tools.size(); ++index) {
      const Tool& tool = request_.tools[index];
      const bool is_named = request_.tool_choice.kind == ToolChoice::Kind::kNamed;
      if (is_named && tool.name != request_.tool_choice.name) continue;
      LOCKET_TRY_STATUS(add_tool(tool, item_path("tools", index) + ".function"));
      ++count;
    }
    if (count != 0) return {};
    return fail(ErrorCode::kBadRequest,
                fmt::format("tool_choice asks for a call of \"{}\", which is not among the tools",
                            request_.tool_choice.name));
  }

  Status add_tool(const Tool& tool, std::string_view path) {
    Status size = check_schema_size(tool.parameters, field_path(path, "parameters"));
    if (!size && tool.is_strict) return size;
    const bool is_free = !tool.is_strict && (loose_tools_ == LooseTools::kFree || !size);
    return calls_.add_tool(tool, path, is_free ? ToolBinding::kName : ToolBinding::kSchema);
  }

  // The call block from behind its first tag's control token.
  void add_call_block(StateId from, StateId end) {
    if (binds_tools()) {
      if (!call_block_) call_block_ = calls_.behind_tag_open(call_count());
      return book_.builder.add_call(from, *call_block_, end);
    }
    book_.builder.set_free(from);
  }

  StateId add_reasoning(StateId answer, StateId end) {
    const StateId calls = book_.builder.add_state();
    std::vector<TextMark> marks = {{kThinkClose, 0, kThinkCloseSymbol, answer, true}};
    if (shows_tools_) {
      marks.push_back({kTagOpen, 1, kDsmlSymbol, calls, false});
      add_call_block(calls, end);
    }
    return add_free_text(book_.builder, {marks, TextEnd::kNotHere, OtherControls::kAllow});
  }

  Status add_answer(StateId from, StateId end) {
    const bool is_json = has_format_ && !is_forced_;
    if (!is_json) {
      add_free_answer(from, end);
      return {};
    }
    if (start_.has_lead_space) {
      const StateId behind = book_.builder.add_state();
      book_.builder.add_byte(from, ' ', behind);
      book_.builder.add_jump(from, behind);
      from = behind;
    }
    const StateId value = book_.builder.add_state();
    for (std::size_t newlines = 0; newlines <= kMaxLeadingNewlines; ++newlines) {
      book_.builder.add_jump(from, value);
      if (newlines == kMaxLeadingNewlines) break;
      const StateId next = book_.builder.add_state();
      book_.builder.add_byte(from, '\n', next);
      from = next;
    }
    LOCKET_TRY_STATUS(add_json(value, end));
    if (!shows_tools_) return {};
    const StateId tag = book_.builder.add_state();
    const StateId calls = book_.builder.add_state();
    book_.builder.add_byte(value, '<', tag);
    book_.builder.add_symbol(tag, kDsmlSymbol, calls);
    add_call_block(calls, end);
    return {};
  }

  void add_free_answer(StateId from, StateId end) {
    const StateId calls = book_.builder.add_state();
    const TextMark marks[] = {{kTagOpen, 1, kDsmlSymbol, calls, false}};
    add_call_block(calls, end);
    const TextEnd text_end = is_forced_ ? TextEnd::kNotHere : TextEnd::kAnywhere;
    book_.builder.add_jump(from,
                           add_free_text(book_.builder, {marks, text_end, OtherControls::kAllow}));
  }

  Status add_json(StateId from, StateId end) {
    if (request_.response_format.kind == ResponseFormat::Kind::kJsonObject) {
      book_.json.add(from, JsonRules::Shape::kAnyObject, end);
      return {};
    }
    LOCKET_TRY_STATUS(check_schema_size(request_.response_format.schema, kSchemaPath));
    LOCKET_TRY(const JsonValue schema, read_json(request_.response_format.schema, kSchemaPath));
    const SchemaReader reader(schema, std::string(kSchemaPath), Strictness::kStrict);
    SchemaCompiler compiler(book_, reader);
    LOCKET_TRY(const RuleId rule, compiler.compile_root());
    book_.builder.add_call(from, rule, end);
    return {};
  }

  const ChatRequest& request_;
  const ParserStart& start_;
  const LooseTools loose_tools_;
  const bool is_forced_;
  const bool shows_tools_;
  const bool has_format_;
  RuleBook book_;
  CallGrammar calls_{book_, start_.markup};
  std::optional<RuleId> call_block_;
};

// The client's beginning of an answer that the model goes on with.
std::string answer_prefix(const ChatRequest& request, const ParserStart& start) {
  std::string prefix;
  const bool is_answer =
      start.start == ReplyStart::kContent || start.start == ReplyStart::kContentContinued;
  const bool is_open = !request.messages.empty() && request.messages.back().is_unfinished;
  if (!is_answer || !is_open) return prefix;
  for (const ContentPart& part : request.messages.back().content) {
    if (!prefix.empty()) prefix += "\n\n";
    prefix += part.text;
  }
  return prefix;
}

}  // namespace

Result<std::optional<AnswerGrammar>> compile_answer(const ChatRequest& request,
                                                    const ParserStart& start) {
  AnswerCompiler compiler(request, start, LooseTools::kBySchema);
  if (compiler.binds_nothing()) return std::optional<AnswerGrammar>();
  Result<Automaton> automaton = compiler.compile();
  const bool has_loose_tool = std::any_of(request.tools.begin(), request.tools.end(),
                                          [](const Tool& tool) { return !tool.is_strict; });
  if (!automaton && has_loose_tool) {
    automaton = AnswerCompiler(request, start, LooseTools::kFree).compile();
  }
  if (!automaton) return tl::make_unexpected(std::move(automaton.error()));
  return std::optional(AnswerGrammar{*std::move(automaton), answer_prefix(request, start)});
}

}  // namespace locket::chat
