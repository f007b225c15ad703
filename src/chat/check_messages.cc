#include "chat/check_messages.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <string>

#include "chat/call_ledger.h"

namespace locket::chat {
namespace {

Status check_call_ids(const Message& message, std::size_t index) {
  std::set<std::string_view> seen;
  for (const ToolCall& call : message.tool_calls) {
    if (call.id.empty() || seen.insert(call.id).second) continue;
    return fail(ErrorCode::kBadRequest,
                fmt::format("messages[{}].tool_calls has the id \"{}\" twice; ids of one message "
                            "must differ",
                            index, call.id));
  }
  return {};
}

Status check_results(const ChatRequest& request) {
  CallLedger ledger;
  for (std::size_t index = 0; index < request.messages.size(); ++index) {
    const Message& message = request.messages[index];
    if (!message.tool_calls.empty()) {
      LOCKET_TRY_STATUS(check_call_ids(message, index));
      ledger.open(message.tool_calls);
    }
    if (message.role == Role::kTool && !ledger.answer(message.tool_call_id)) {
      return fail(
          ErrorCode::kBadRequest,
          fmt::format("messages[{}] is a result for the call \"{}\", and no earlier message "
                      "has such a call without a result; send the whole conversation, with "
                      "the assistant message that made the call",
                      index, message.tool_call_id));
    }
  }
  return {};
}

Status check_unfinished(const ChatRequest& request) {
  for (std::size_t index = 0; index < request.messages.size(); ++index) {
    const Message& message = request.messages[index];
    if (!message.is_unfinished) continue;
    std::string_view problem;
    if (index + 1 < request.messages.size()) {
      problem = "is not the last message";
    } else if (!message.tool_calls.empty()) {
      problem = "has tool_calls";
    } else if (has_visible_tools(request)) {
      problem = "stands in a request with tools";
    } else if (request.response_format.kind == ResponseFormat::Kind::kJsonObject) {
      problem = "stands in a request with response_format json_object";
    }
    if (problem.empty()) continue;
    return fail(
        ErrorCode::kBadRequest,
        fmt::format("messages[{}].prefix is true, but the message {}; only a last assistant "
                    "message of plain text can be continued",
                    index, problem));
  }
  return {};
}

Status check_tool_choice(const ChatRequest& request) {
  if (!has_forced_call(request)) return {};
  if (request.tools.empty()) {
    return fail(ErrorCode::kBadRequest,
                "tool_choice asks for a call, but the request has no tools; give tools, or leave "
                "tool_choice out");
  }
  const std::string& name = request.tool_choice.name;
  const auto fits = [&name](const Tool& tool) { return tool.name == name; };
  if (request.tool_choice.kind == ToolChoice::Kind::kNamed &&
      std::none_of(request.tools.begin(), request.tools.end(), fits)) {
    return fail(
        ErrorCode::kBadRequest,
        fmt::format("tool_choice names \"{}\"; it must be the name of one of the tools", name));
  }
  if (request.thinking == ThinkingMode::kThinking) {
    return fail(ErrorCode::kBadRequest,
                "tool_choice asks for a call, which thinking mode does not allow; set thinking to "
                "disabled, or tool_choice to auto");
  }
  return {};
}

}  // namespace

Status check_messages(const ChatRequest& request) {
  if (request.messages.empty()) {
    return fail(ErrorCode::kBadRequest, "messages is empty; it must have at least one message");
  }
  LOCKET_TRY_STATUS(check_results(request));
  LOCKET_TRY_STATUS(check_unfinished(request));
  return check_tool_choice(request);
}

}  // namespace locket::chat
