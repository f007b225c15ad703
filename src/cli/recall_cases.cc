#include "cli/recall_cases.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"

namespace locket::cli {
namespace {

Result<std::vector<RecallCase>> read_cases(const nlohmann::json& list) {
  std::vector<RecallCase> cases;
  for (const auto& entry : list) {
    RecallCase recall;
    recall.request.thinking = chat::ThinkingMode::kChat;
    for (const auto& message : entry.at("messages")) {
      const bool is_user = message.at("role") == "user";
      recall.request.messages.push_back(
          chat::text_message(is_user ? chat::Role::kUser : chat::Role::kAssistant,
                             message.at("content").get<std::string>()));
    }
    if (recall.request.messages.empty()) {
      return fail(ErrorCode::kBadRequest, "a conversation without messages");
    }
    recall.expected = entry.at("expected").get<std::string>();
    recall.reference = entry.at("bounded").get<std::string>();
    cases.push_back(std::move(recall));
  }
  return cases;
}

}  // namespace

Result<RecallCases> load_recall_cases(const std::filesystem::path& model) {
  const std::filesystem::path path = model / "recall.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return fail(ErrorCode::kNotFound,
                fmt::format("{} has no recall.json, which holds the conversations of the demo; the "
                            "small model that ships has one",
                            model.string()));
  }
  LOCKET_TRY(const std::string text, read_whole_file(path));
  try {
    const auto parsed = nlohmann::json::parse(text);
    RecallCases cases;
    LOCKET_TRY(cases.recall, read_cases(parsed.at("recall")));
    LOCKET_TRY(cases.controls, read_cases(parsed.at("controls")));
    if (cases.recall.empty()) return fail(ErrorCode::kBadRequest, path.string() + " is empty");
    return cases;
  } catch (const nlohmann::json::exception& error) {
    return fail(ErrorCode::kBadRequest, fmt::format("{}: {}", path.string(), error.what()));
  }
}

}  // namespace locket::cli
