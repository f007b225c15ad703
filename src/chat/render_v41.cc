#include "chat/render_v41.h"

#include <fmt/format.h>
#include <string_view>

#include "base/check.h"
#include "chat/markup.h"
#include "chat/message_text.h"
#include "chat/prepare_messages.h"
#include "chat/render_parts.h"
#include "chat/render_tools.h"

namespace locket::chat {
namespace {

constexpr std::string_view kCallsOpen = spelling_of(Markup::kV41).calls_open;

class Renderer {
 public:
  explicit Renderer(const ChatRequest& request)
      : request_(request),
        is_thinking_(request.thinking == ThinkingMode::kThinking),
        keeps_reasoning_(has_visible_tools(request) ||
                         request.old_reasoning == OldReasoning::kKeepAlways) {}

  RenderedPrompt render() {
    const std::vector<Turn> turns = prepare_messages(request_, Reminders::kFirst);
    out_.add_control(kBeginOfSentence);
    if (is_thinking_) add_effort_line();
    const Turn* previous = nullptr;
    for (const Turn& turn : turns) {
      if (turn.kind != Turn::Kind::kSystem) end_system();
      if (turn.kind == Turn::Kind::kAssistant) add_header_before(turn, previous);
      add_turn(turn, previous);
      previous = &turn;
    }
    LOCKET_CHECK(previous != nullptr);
    end_system();
    const bool continues = is_unfinished(*previous);
    if (!continues) add_last_header(*previous);
    prompt_.parser.start =
        continues ? continued_start(request_, *previous->message) : fresh_start(*previous);
    prompt_.parser.tool_calls = has_visible_tools(request_);
    prompt_.parser.json = request_.response_format.kind == ResponseFormat::Kind::kJsonObject;
    prompt_.segments = out_.take();
    return std::move(prompt_);
  }

 private:
  static bool is_unfinished(const Turn& turn) {
    return turn.kind == Turn::Kind::kAssistant && turn.message->is_unfinished;
  }

  // Called before everything that is not the system's; the first call counts. What follows begins
  // with a control token, so that no segment holds some of both.
  void end_system() {
    if (prompt_.system_segments == 0) prompt_.system_segments = out_.size();
  }

  // The system token of a first system turn stands before the effort line, once for both.
  void add_effort_line() {
    out_.add_control(kSystemToken);
    out_.add_plain(
        fmt::format("Reasoning Effort: {} (range 1-100, the higher the value, the more "
                    "thorough the reasoning)\n\n",
                    request_.effort));
  }

  void add_turn(const Turn& turn, const Turn* previous) {
    switch (turn.kind) {
      case Turn::Kind::kSystem:
        add_system(turn, previous == nullptr);
        return;
      case Turn::Kind::kUser:
        add_user(turn);
        return;
      case Turn::Kind::kReminder:
        out_.add_control(kReminderToken);
        add_parts(*turn.message);
        return;
      case Turn::Kind::kAssistant:
        add_assistant(*turn.message, previous);
        return;
      case Turn::Kind::kCount:
        break;
    }
    LOCKET_CHECK(false);
  }

  void add_parts(const Message& message) {
    std::string_view gap;
    for (const ContentPart& part : message.content) {
      out_.add_plain(gap);
      gap = kBlockGap;
      if (part.kind == ContentPart::Kind::kText) {
        out_.add_plain(part.text);
        continue;
      }
      out_.add_control(kImageToken);
      prompt_.images.push_back(part.image);
    }
  }

  // Tools and response format hang on the first turn. A first system turn without content leaves no
  // trace.
  void add_system(const Turn& turn, bool is_first) {
    const bool has_format = request_.response_format.kind != ResponseFormat::Kind::kText;
    const bool has_extras = is_first && (has_visible_tools(request_) || has_format);
    const bool is_blank = is_first && !has_extras && turn.message->content.empty();
    const bool has_token = is_first && is_thinking_;
    if (!has_token && !is_blank) out_.add_control(kSystemToken);
    if (turn.message != nullptr) add_parts(*turn.message);
    if (!has_extras) return;
    if (has_visible_tools(request_)) {
      out_.add_plain(kBlockGap);
      render_tools(shown_tools(request_), Markup::kV41, out_);
    }
    add_response_format(request_, out_);
  }

  void add_user(const Turn& turn) {
    out_.add_control(kUserToken);
    std::string_view gap;
    for (const UserBlock& block : turn.blocks) {
      out_.add_plain(gap);
      gap = kBlockGap;
      if (block.is_result) out_.add_plain("<tool_result>");
      add_parts(*block.message);
      if (block.is_result) out_.add_plain("</tool_result>");
    }
  }

  static bool follows_task(const Turn* previous) {
    return previous != nullptr && previous->task != Task::kNone;
  }

  void add_assistant(const Message& message, const Turn* previous) {
    const bool is_open = is_thinking_ && (keeps_reasoning_ || follows_task(previous));
    const Task task = previous == nullptr ? Task::kNone : previous->task;
    if (is_replayed(message, is_open ? Thought::kOpen : Thought::kClosed, task)) {
      if (message.sampled_start == ReplyStart::kCalls) out_.add_template(kCallsOpen);
      out_.add_sampled(message.sampled);
      out_.add_control(kEndOfSentence);
      return;
    }
    const std::string content = joined_text(message);
    if (is_thinking_ && !follows_task(previous) && (keeps_reasoning_ || message.is_unfinished)) {
      out_.add_assistant_text(message.reasoning);
      // An unfinished message without content is still inside its reasoning.
      if (!message.is_unfinished || !content.empty()) out_.add_control(kThinkClose);
    }
    out_.add_assistant_text(content);
    if (!message.tool_calls.empty()) render_calls(message.tool_calls, Markup::kV41, out_);
    if (!message.is_unfinished) out_.add_control(kEndOfSentence);
  }

  void add_header(Thought thought) {
    out_.add_control(kAssistantToken);
    out_.add_control(thought_token(thought));
  }

  // A task stands in place of the header; "action" has both.
  void add_task(Task task) {
    if (task == Task::kAction) add_header(is_thinking_ ? Thought::kOpen : Thought::kClosed);
    out_.add_control(task_token(task));
  }

  void add_header_before(const Turn& assistant, const Turn* previous) {
    if (follows_task(previous)) {
      add_task(previous->task);
      return;
    }
    const bool is_open = is_thinking_ && (keeps_reasoning_ || is_unfinished(assistant));
    add_header(is_open ? Thought::kOpen : Thought::kClosed);
  }

  void add_last_header(const Turn& last) {
    if (last.task != Task::kNone) {
      add_task(last.task);
      return;
    }
    add_header(is_thinking_ ? Thought::kOpen : Thought::kClosed);
    if (has_forced_call(request_)) out_.add_template(kCallsOpen);
  }

  ReplyStart fresh_start(const Turn& last) const {
    if (last.task == Task::kNone && has_forced_call(request_)) return ReplyStart::kCalls;
    return is_thinking_ ? ReplyStart::kReasoning : ReplyStart::kContent;
  }

  const ChatRequest& request_;
  const bool is_thinking_;
  const bool keeps_reasoning_;
  SegmentWriter out_;
  RenderedPrompt prompt_;
};

}  // namespace

RenderedPrompt render_segments(const ChatRequest& request) { return Renderer(request).render(); }

Result<RenderedPrompt> render_v41(const ChatRequest& request,
                                  const tokenizer::Tokenizer& tokenizer) {
  return encode_prompt(render_segments(request), tokenizer);
}

}  // namespace locket::chat
