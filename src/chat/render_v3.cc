#include "chat/render_v3.h"

#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "chat/markup.h"
#include "chat/message_text.h"
#include "chat/render_parts.h"

namespace locket::chat {
namespace {

class Renderer {
 public:
  Renderer(const ChatRequest& request, V3Thinking thinking)
      : request_(request), thinking_(thinking) {}

  RenderedPrompt render() {
    LOCKET_CHECK(!request_.messages.empty());
    out_.add_control(kBeginOfSentence);
    add_system();
    prompt_.system_segments = out_.size();
    for (const Message& message : request_.messages) add_message(message);
    const Message& last = request_.messages.back();
    if (!last.is_unfinished) add_last_header();
    prompt_.parser.start = last.is_unfinished ? unfinished_start(last) : fresh_start();
    prompt_.parser.json = request_.response_format.kind == ResponseFormat::Kind::kJsonObject;
    prompt_.segments = out_.take();
    return std::move(prompt_);
  }

 private:
  bool wants_thought() const { return request_.thinking == ThinkingMode::kThinking; }

  void add_system() {
    std::string_view gap;
    for (const Message& message : request_.messages) {
      if (message.role != Role::kSystem) continue;
      out_.add_plain(gap);
      out_.add_plain(joined_text(message));
      gap = kBlockGap;
    }
  }

  void add_message(const Message& message) {
    switch (message.role) {
      case Role::kSystem:
        return;
      case Role::kUser:
      case Role::kDeveloper:
        out_.add_control(kUserToken);
        out_.add_plain(joined_text(message));
        follows_user_ = true;
        return;
      case Role::kAssistant:
        add_assistant(message);
        follows_user_ = false;
        return;
      case Role::kTool:
      case Role::kLatestReminder:
      case Role::kCount:
        break;
    }
    LOCKET_CHECK(false);
  }

  // What a client kept of an answer may begin with its reasoning, which old turns do not show.
  std::string shown_answer(const Message& message) const {
    std::string text = joined_text(message);
    if (thinking_ == V3Thinking::kNone) return text;
    const std::size_t end =
        thinking_ == V3Thinking::kAlways ? text.rfind(kThinkClose) : text.find(kThinkClose);
    return end == std::string::npos ? text : text.substr(end + kThinkClose.size());
  }

  void add_assistant(const Message& message) {
    if (message.is_unfinished) return add_unfinished(message);
    if (thinking_ != V3Thinking::kChosen) {
      out_.add_control(kAssistantToken);
    } else if (follows_user_) {
      add_thought_header(Thought::kClosed);
    }
    out_.add_plain(shown_answer(message));
    out_.add_control(kEndOfSentence);
  }

  void add_unfinished(const Message& message) {
    add_last_header();
    if (fresh_start() == ReplyStart::kContent) return out_.add_plain(joined_text(message));
    const std::string content = joined_text(message);
    out_.add_plain(message.reasoning);
    // Without content it is still inside its reasoning.
    if (content.empty()) return;
    if (thinking_ == V3Thinking::kAlways) out_.add_plain("\n");
    out_.add_control(kThinkClose);
    if (thinking_ == V3Thinking::kAlways) out_.add_plain(kBlockGap);
    out_.add_plain(content);
  }

  void add_thought_header(Thought thought) {
    out_.add_control(kAssistantToken);
    out_.add_control(thought_token(thought));
  }

  void add_last_header() {
    switch (thinking_) {
      case V3Thinking::kNone:
        out_.add_control(kAssistantToken);
        return;
      case V3Thinking::kAlways:
        add_thought_header(Thought::kOpen);
        out_.add_plain("\n");
        return;
      case V3Thinking::kChosen:
        add_thought_header(wants_thought() ? Thought::kOpen : Thought::kClosed);
        return;
      case V3Thinking::kCount:
        break;
    }
    LOCKET_CHECK(false);
  }

  ReplyStart fresh_start() const {
    const bool is_open =
        thinking_ == V3Thinking::kAlways || (thinking_ == V3Thinking::kChosen && wants_thought());
    return is_open ? ReplyStart::kReasoning : ReplyStart::kContent;
  }

  ReplyStart unfinished_start(const Message& message) const {
    if (fresh_start() == ReplyStart::kContent) return ReplyStart::kContent;
    if (!joined_text(message).empty()) return ReplyStart::kContentContinued;
    return message.reasoning.empty() ? ReplyStart::kReasoning : ReplyStart::kReasoningContinued;
  }

  const ChatRequest& request_;
  const V3Thinking thinking_;
  bool follows_user_ = false;
  SegmentWriter out_;
  RenderedPrompt prompt_;
};

}  // namespace

RenderedPrompt render_v3(const ChatRequest& request, V3Thinking thinking) {
  return Renderer(request, thinking).render();
}

}  // namespace locket::chat
