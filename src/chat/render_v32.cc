#include "chat/render_v32.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "chat/call_ledger.h"
#include "chat/markup.h"
#include "chat/message_text.h"
#include "chat/prepare_messages.h"
#include "chat/render_parts.h"
#include "chat/render_tools.h"

namespace locket::chat {
namespace {

struct ToolResult {
  const Message* message = nullptr;
  std::size_t call_place = 0;
};

class Renderer {
 public:
  explicit Renderer(const ChatRequest& request)
      : request_(request), is_thinking_(request.thinking == ThinkingMode::kThinking) {}

  RenderedPrompt render() {
    const std::vector<Message>& messages = request_.messages;
    LOCKET_CHECK(!messages.empty());
    for (std::size_t i = 0; i < messages.size(); ++i) {
      if (is_user(messages[i])) last_user_ = i + 1;
    }
    out_.add_control(kBeginOfSentence);
    if (messages.front().role != Role::kSystem) add_extras();
    for (std::size_t i = 0; i < messages.size(); ++i) add_message(i);
    end_system();
    finish_turn(messages.size());
    const Message& last = messages.back();
    const bool continues = last.is_unfinished;
    if (!continues) add_last_header();
    prompt_.parser = {.start = continues ? continued_start(request_, last) : fresh_start(),
                      .tool_calls = has_visible_tools(request_),
                      .json = request_.response_format.kind == ResponseFormat::Kind::kJsonObject,
                      .markup = Markup::kV32};
    prompt_.segments = out_.take();
    return std::move(prompt_);
  }

 private:
  static bool is_user(const Message& message) {
    return message.role == Role::kUser || message.role == Role::kDeveloper;
  }

  void end_system() {
    if (prompt_.system_segments == 0) prompt_.system_segments = out_.size();
  }

  // Of the answer that stands at the place `message`.
  Thought thought_at(std::size_t message) const {
    return is_thinking_ && message >= last_user_ ? Thought::kOpen : Thought::kClosed;
  }

  // Tools and response format.
  void add_extras() {
    if (has_visible_tools(request_)) {
      out_.add_plain(kBlockGap);
      render_tools(shown_tools(request_), Markup::kV32, out_);
    }
    add_response_format(request_, out_);
  }

  void add_message(std::size_t i) {
    const Message& message = request_.messages[i];
    if (message.role != Role::kSystem) end_system();
    switch (message.role) {
      case Role::kSystem:
        out_.add_plain(joined_text(message));
        if (i == 0) add_extras();
        return;
      case Role::kUser:
      case Role::kDeveloper:
        finish_turn(i);
        out_.add_control(kUserToken);
        if (message.role == Role::kDeveloper) out_.add_plain("\n\n# The user's message is: ");
        out_.add_plain(joined_text(message));
        state_ = State::kUser;
        return;
      case Role::kTool:
        if (state_ != State::kResults) finish_turn(i);
        results_.push_back({&message, ledger_.answer(message.tool_call_id).value_or(0)});
        state_ = State::kResults;
        return;
      case Role::kAssistant:
        finish_turn(i);
        if (state_ != State::kHeader) add_header(thought_at(i));
        add_assistant(message, thought_at(i));
        state_ = State::kAnswer;
        return;
      case Role::kLatestReminder:
      case Role::kCount:
        break;
    }
    LOCKET_CHECK(false);
  }

  // What a user message or results end with. System text behind them belongs to them.
  void finish_turn(std::size_t next) {
    if (state_ == State::kUser) {
      add_header(thought_at(next));
      state_ = State::kHeader;
    } else if (state_ == State::kResults) {
      add_results();
      out_.add_plain(kBlockGap);
      out_.add_control(thought_token(thought_at(next)));
      state_ = State::kHeader;
    }
  }

  void add_header(Thought thought) {
    out_.add_control(kAssistantToken);
    out_.add_control(thought_token(thought));
  }

  void add_results() {
    std::ranges::stable_sort(results_, {}, &ToolResult::call_place);
    out_.add_plain("\n\n<function_results>");
    for (const ToolResult& result : results_) {
      out_.add_plain("\n<result>");
      out_.add_plain(joined_text(*result.message));
      out_.add_plain("</result>");
    }
    out_.add_plain("\n</function_results>");
    results_.clear();
  }

  void add_assistant(const Message& message, Thought thought) {
    if (!message.tool_calls.empty()) ledger_.open(message.tool_calls);
    if (is_replayed(message, thought, Task::kNone)) {
      if (message.sampled_start == ReplyStart::kCalls) {
        out_.add_template(spelling_of(Markup::kV32).calls_open);
      }
      out_.add_sampled(message.sampled);
      out_.add_control(kEndOfSentence);
      return;
    }
    const std::string content = joined_text(message);
    if (thought == Thought::kOpen) {
      out_.add_plain(message.reasoning);
      // An unfinished message without content is still inside its reasoning.
      if (!message.is_unfinished || !content.empty()) out_.add_control(kThinkClose);
    }
    out_.add_plain(content);
    if (!message.tool_calls.empty()) render_calls(message.tool_calls, Markup::kV32, out_);
    if (!message.is_unfinished) out_.add_control(kEndOfSentence);
  }

  void add_last_header() {
    if (state_ != State::kHeader) add_header(thought_at(request_.messages.size()));
    if (has_forced_call(request_)) out_.add_template(spelling_of(Markup::kV32).calls_open);
  }

  ReplyStart fresh_start() const {
    if (has_forced_call(request_)) return ReplyStart::kCalls;
    return is_thinking_ ? ReplyStart::kReasoning : ReplyStart::kContent;
  }

  // What was written last, system text aside.
  enum class State { kNothing, kUser, kResults, kHeader, kAnswer, kCount };

  const ChatRequest& request_;
  const bool is_thinking_;
  std::size_t last_user_ = 0;  // behind the last user message
  State state_ = State::kNothing;
  std::vector<ToolResult> results_;  // not yet written
  CallLedger ledger_;
  SegmentWriter out_;
  RenderedPrompt prompt_;
};

}  // namespace

RenderedPrompt render_v32(const ChatRequest& request) { return Renderer(request).render(); }

}  // namespace locket::chat
