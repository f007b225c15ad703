// The conversations of the demo, from recall.json beside a model: a fact in the first message,
// other talk, the question in the last one, and the answers of the Python reference that trained
// the model.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/message.h"

namespace locket::cli {

struct RecallCase {
  chat::ChatRequest request;
  std::string expected;   // the right answer
  std::string reference;  // what the Python reference answered
};

struct RecallCases {
  std::vector<RecallCase> recall;    // at least one
  std::vector<RecallCase> controls;  // the same talk without the fact
};

// kNotFound if the folder has no recall.json, kBadRequest with the reason if it is damaged.
[[nodiscard]] Result<RecallCases> load_recall_cases(const std::filesystem::path& model);

}  // namespace locket::cli
