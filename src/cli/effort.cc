#include "cli/effort.h"

#include <charconv>

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

}  // namespace locket::cli
