#include "cli/effort.h"

#include <charconv>
#include <fmt/format.h>

#include "chat/request_json.h"

namespace locket::cli {

Status apply_effort(std::string_view effort, chat::ChatRequest& request) {
  if (effort.empty() || effort == "none") {
    request.thinking = chat::ThinkingMode::kChat;
    return {};
  }
  request.thinking = chat::ThinkingMode::kThinking;
  int number = 0;
  const auto [end, error] = std::from_chars(effort.data(), effort.data() + effort.size(), number);
  if (error == std::errc() && end == effort.data() + effort.size()) {
    if (number < 1 || number > 100) {
      return fail(ErrorCode::kBadRequest,
                  "--effort " + std::string(effort) + ": a number from 1 to 100 is needed");
    }
    request.effort = number;
    return {};
  }
  LOCKET_TRY(request.effort, chat::effort_of_name(effort));
  return {};
}

std::string check_effort(const std::string& effort) {
  chat::ChatRequest request;
  if (apply_effort(effort, request)) return "";
  return fmt::format(
      "\"{}\" is no effort: write 1 to 100, or none, minimal, low, medium, high, xhigh, max, ultra",
      effort);
}

}  // namespace locket::cli
