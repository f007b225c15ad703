#include "chat/model_names.h"

#include <algorithm>
#include <array>

namespace locket::chat {
namespace {

constexpr std::string_view kChatName = "deepseek-chat";
constexpr std::string_view kReasonerName = "deepseek-reasoner";
constexpr std::array<std::string_view, 4> kOtherNames = {
    "deepseek-v4-flash", "deepseek-v4-flash-vision-exp", kChatName, kReasonerName};

std::string_view without_suffix(std::string_view name) {
  constexpr std::string_view kLongContext = "[1m]";
  if (name.size() > kLongContext.size() && name.ends_with(kLongContext)) {
    name.remove_suffix(kLongContext.size());
  }
  return name;
}

}  // namespace

std::string canonical_model_name(std::string_view name) {
  name = without_suffix(name);
  const bool is_other =
      std::find(kOtherNames.begin(), kOtherNames.end(), name) != kOtherNames.end();
  return std::string(is_other ? "deepseek-flash" : name);
}

std::optional<ThinkingMode> thinking_of_model_name(std::string_view name) {
  name = without_suffix(name);
  if (name == kChatName) return ThinkingMode::kChat;
  if (name == kReasonerName) return ThinkingMode::kThinking;
  return std::nullopt;
}

}  // namespace locket::chat
