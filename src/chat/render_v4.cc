#include "chat/render_v4.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "chat/markup.h"
#include "chat/message_text.h"
#include "chat/prepare_messages.h"
#include "chat/render_parts.h"
#include "chat/render_tools.h"

namespace locket::chat {
namespace {

constexpr int kHighestEffort = 100;
constexpr std::string_view kHighestEffortText =
    "Reasoning Effort: Absolute maximum with no shortcuts permitted.\n"
    "You MUST be very thorough in your thinking and comprehensively decompose the problem to "
    "resolve the root cause, rigorously stress-testing your logic against all potential paths, "
    "edge cases, and adversarial scenarios.\n"
    "Explicitly write out your entire deliberation process, documenting every intermediate step, "
    "considered alternative, and rejected hypothesis to ensure absolutely no assumption is left "
    "unchecked.\n\n";

class Renderer {
 public:
  explicit Renderer(const ChatRequest& request)
      : request_(request),
        is_thinking_(request.thinking == ThinkingMode::kThinking),
        keeps_reasoning_(has_visible_tools(request) ||
                         request.old_reasoning == OldReasoning::kKeepAlways),
        turns_(prepare_messages(request, Reminders::kAll)) {}

  RenderedPrompt render() {
    LOCKET_CHECK(!turns_.empty());
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      if (turns_[i].kind == Turn::Kind::kUser) last_user_ = i + 1;
    }
    out_.add_control(kBeginOfSentence);
    if (is_thinking_ && request_.effort == kHighestEffort) out_.add_plain(kHighestEffortText);
    for (std::size_t i = 0; i < turns_.size(); ++i) add_turn(i);
    end_system();
    const Turn& last = turns_.back();
    const bool continues = last.kind == Turn::Kind::kAssistant && last.message->is_unfinished;
    if (!continues) add_last_header(last);
    prompt_.parser = {
        .start = continues ? continued_start(request_, *last.message) : fresh_start(last),
        .tool_calls = has_visible_tools(request_),
        .json = request_.response_format.kind == ResponseFormat::Kind::kJsonObject,
        .markup = Markup::kV4};
    prompt_.segments = out_.take();
    return std::move(prompt_);
  }

 private:
  // Called before everything that is not the system's; the first call counts.
  void end_system() {
    if (prompt_.system_segments == 0) prompt_.system_segments = out_.size();
  }

  // Of the answer that stands at the place `turn`.
  Thought thought_at(std::size_t turn) const {
    const bool is_open = is_thinking_ && (keeps_reasoning_ || turn >= last_user_);
    return is_open ? Thought::kOpen : Thought::kClosed;
  }

  Task task_before(std::size_t turn) const {
    return turn == 0 ? Task::kNone : turns_[turn - 1].task;
  }

  void add_turn(std::size_t i) {
    const Turn& turn = turns_[i];
    if (turn.kind != Turn::Kind::kSystem) end_system();
    switch (turn.kind) {
      case Turn::Kind::kSystem:
        add_system(turn, i == 0);
        return;
      case Turn::Kind::kUser:
        add_user(turn);
        return;
      case Turn::Kind::kReminder:
        if (i > 0 && turns_[i - 1].kind == Turn::Kind::kUser) add_header(i);
        out_.add_control(kReminderToken);
        out_.add_plain(joined_text(*turn.message));
        return;
      case Turn::Kind::kAssistant:
        add_header(i);
        add_assistant(*turn.message, i);
        has_header_ = false;
        return;
      case Turn::Kind::kCount:
        break;
    }
    LOCKET_CHECK(false);
  }

  void add_system(const Turn& turn, bool is_first) {
    if (turn.message != nullptr) out_.add_plain(joined_text(*turn.message));
    if (!is_first) return;
    if (has_visible_tools(request_)) {
      out_.add_plain(kBlockGap);
      render_tools(shown_tools(request_), Markup::kV4, out_);
    }
    add_response_format(request_, out_);
  }

  void add_user(const Turn& turn) {
    has_header_ = false;
    out_.add_control(kUserToken);
    std::string_view gap;
    for (const UserBlock& block : turn.blocks) {
      out_.add_plain(gap);
      gap = kBlockGap;
      if (block.is_result) out_.add_plain("<tool_result>");
      out_.add_plain(joined_text(*block.message));
      if (block.is_result) out_.add_plain("</tool_result>");
    }
  }

  // Once for an answer: before a reminder that stands between the user and it, or before itself. A
  // task stands in place of the header; "action" has both.
  void add_header(std::size_t turn) {
    if (has_header_) return;
    has_header_ = true;
    const Task task = task_before(turn);
    if (task == Task::kNone || task == Task::kAction) {
      out_.add_control(kAssistantToken);
      out_.add_control(
          thought_token(task == Task::kAction && is_thinking_ ? Thought::kOpen : thought_at(turn)));
    }
    if (task != Task::kNone) out_.add_control(task_token(task));
  }

  void add_last_header(const Turn& last) {
    add_header(turns_.size());
    if (last.task == Task::kNone && has_forced_call(request_)) {
      out_.add_template(spelling_of(Markup::kV4).calls_open);
    }
  }

  void add_assistant(const Message& message, std::size_t turn) {
    const Task task = task_before(turn);
    const bool is_open = task == Task::kNone ? thought_at(turn) == Thought::kOpen : is_thinking_;
    if (is_replayed(message, is_open ? Thought::kOpen : Thought::kClosed, task)) {
      if (message.sampled_start == ReplyStart::kCalls) {
        out_.add_template(spelling_of(Markup::kV4).calls_open);
      }
      out_.add_sampled(message.sampled);
      out_.add_control(kEndOfSentence);
      return;
    }
    const std::string content = joined_text(message);
    if (is_open && task == Task::kNone) {
      out_.add_plain(message.reasoning);
      // An unfinished message without content is still inside its reasoning.
      if (!message.is_unfinished || !content.empty()) out_.add_control(kThinkClose);
    }
    out_.add_plain(content);
    if (!message.tool_calls.empty()) render_calls(message.tool_calls, Markup::kV4, out_);
    if (!message.is_unfinished) out_.add_control(kEndOfSentence);
  }

  ReplyStart fresh_start(const Turn& last) const {
    if (last.task == Task::kNone && has_forced_call(request_)) return ReplyStart::kCalls;
    return is_thinking_ ? ReplyStart::kReasoning : ReplyStart::kContent;
  }

  const ChatRequest& request_;
  const bool is_thinking_;
  const bool keeps_reasoning_;
  const std::vector<Turn> turns_;
  std::size_t last_user_ = 0;  // behind the last user turn
  bool has_header_ = false;    // the answer that comes next has its header
  SegmentWriter out_;
  RenderedPrompt prompt_;
};

}  // namespace

RenderedPrompt render_v4(const ChatRequest& request) { return Renderer(request).render(); }

}  // namespace locket::chat
