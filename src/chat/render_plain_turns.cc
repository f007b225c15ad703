#include "chat/render_plain_turns.h"

#include <utility>

#include "base/check.h"
#include "chat/markup.h"
#include "chat/message_text.h"

namespace locket::chat {
namespace {

RenderedPrompt finished(const ChatRequest& request, SegmentWriter& out) {
  RenderedPrompt prompt;
  prompt.parser.json = request.response_format.kind == ResponseFormat::Kind::kJsonObject;
  prompt.segments = out.take();
  return prompt;
}

std::string_view chatml_role(Role role) {
  switch (role) {
    case Role::kSystem:
      return "system";
    case Role::kUser:
    case Role::kDeveloper:
      return "user";
    case Role::kAssistant:
      return "assistant";
    case Role::kTool:
    case Role::kLatestReminder:
    case Role::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

void open_chatml(std::string_view role, SegmentWriter& out) {
  out.add_control(kTurnBegin);
  out.add_plain(role);
  out.add_plain("\n");
}

void close_chatml(SegmentWriter& out) {
  out.add_control(kTurnEnd);
  out.add_plain("\n");
}

}  // namespace

RenderedPrompt render_v1(const ChatRequest& request) {
  SegmentWriter out;
  out.add_control(kBeginOfSentence);
  for (const Message& message : request.messages) {
    const std::string text = joined_text(message);
    if (message.role == Role::kSystem) {
      out.add_plain(text + "\n\n");
    } else if (message.role != Role::kAssistant) {
      out.add_plain("User: " + text + "\n\n");
    } else if (message.is_unfinished) {
      out.add_plain(text.empty() ? "Assistant:" : "Assistant: " + text);
    } else {
      out.add_plain("Assistant: " + text);
      out.add_control(kEndOfSentence);
    }
  }
  const Message& last = request.messages.back();
  if (!last.is_unfinished) out.add_plain("Assistant:");
  RenderedPrompt prompt = finished(request, out);
  // Instructions and the first turn are one run of plain text.
  prompt.system_segments = 1;
  prompt.parser.has_lead_space = !last.is_unfinished || joined_text(last).empty();
  return prompt;
}

RenderedPrompt render_chatml(const ChatRequest& request, std::string_view default_system) {
  SegmentWriter out;
  std::size_t system_segments = 0;
  if (request.messages.front().role != Role::kSystem && !default_system.empty()) {
    open_chatml(chatml_role(Role::kSystem), out);
    out.add_plain(default_system);
    close_chatml(out);
  }
  bool is_in_system = true;
  for (const Message& message : request.messages) {
    is_in_system = is_in_system && message.role == Role::kSystem;
    if (!is_in_system && system_segments == 0) system_segments = out.size();
    open_chatml(chatml_role(message.role), out);
    out.add_plain(joined_text(message));
    if (!message.is_unfinished) close_chatml(out);
  }
  if (is_in_system) system_segments = out.size();
  if (!request.messages.back().is_unfinished) open_chatml(chatml_role(Role::kAssistant), out);
  RenderedPrompt prompt = finished(request, out);
  prompt.system_segments = system_segments;
  return prompt;
}

}  // namespace locket::chat
