#include "chat/render_parts.h"

#include "base/check.h"
#include "chat/markup.h"
#include "chat/message_text.h"

namespace locket::chat {

std::string_view thought_token(Thought thought) {
  return thought == Thought::kOpen ? kThinkOpen : kThinkClose;
}

std::string_view task_token(Task task) {
  switch (task) {
    case Task::kAction:
      return "<｜action｜>";
    case Task::kQuery:
      return "<｜query｜>";
    case Task::kAuthority:
      return "<｜authority｜>";
    case Task::kDomain:
      return "<｜domain｜>";
    case Task::kTitle:
      return "<｜title｜>";
    case Task::kReadUrl:
      return "<｜read_url｜>";
    case Task::kNone:
    case Task::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

std::vector<const Tool*> shown_tools(const ChatRequest& request) {
  std::vector<const Tool*> shown;
  for (const Tool& tool : request.tools) {
    const bool is_named = request.tool_choice.kind == ToolChoice::Kind::kNamed;
    if (!is_named || tool.name == request.tool_choice.name) shown.push_back(&tool);
  }
  return shown;
}

void add_response_format(const ChatRequest& request, SegmentWriter& out) {
  if (request.response_format.kind == ResponseFormat::Kind::kText) return;
  out.add_plain(
      "\n\n## Response Format:\n\nYou MUST strictly adhere to the following schema to reply:\n");
  const bool has_schema = request.response_format.kind == ResponseFormat::Kind::kJsonSchema;
  out.add_plain(has_schema ? request.response_format.schema : "{\"type\": \"json_object\"}");
}

bool is_replayed(const Message& message, Thought thought, Task task) {
  if (message.sampled.empty() || message.is_unfinished) return false;
  switch (message.sampled_start) {
    case ReplyStart::kReasoning:
      return thought == Thought::kOpen;
    case ReplyStart::kContent:
      return thought == Thought::kClosed;
    case ReplyStart::kCalls:
      return thought == Thought::kClosed && task == Task::kNone;
    case ReplyStart::kReasoningContinued:
    case ReplyStart::kContentContinued:
      return false;
    case ReplyStart::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

ReplyStart continued_start(const ChatRequest& request, const Message& message) {
  if (request.thinking != ThinkingMode::kThinking) return ReplyStart::kContent;
  if (!joined_text(message).empty()) return ReplyStart::kContentContinued;
  return message.reasoning.empty() ? ReplyStart::kReasoning : ReplyStart::kReasoningContinued;
}

}  // namespace locket::chat
