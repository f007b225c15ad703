#include "cli/v41_only.h"

#include <fmt/format.h>

namespace locket::cli {

Result<const model::V41Model*> v41_only(const model::LanguageModel& model, std::string_view what) {
  const auto* v41 = dynamic_cast<const model::V41Model*>(&model);
  if (v41 != nullptr) return v41;
  return fail(ErrorCode::kUnsupported,
              fmt::format("{} needs a model of generation V4.1; this one is {}", what,
                          model.shape().generation));
}

}  // namespace locket::cli
