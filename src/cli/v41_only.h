// What some commands can do with a V4.1 model only.
#pragma once

#include <string_view>

#include "base/result.h"
#include "model/generations/v41.h"
#include "model/language_model.h"

namespace locket::cli {

// kUnsupported, naming the generation found, for any other one. `what` begins the message.
[[nodiscard]] Result<const model::V41Model*> v41_only(const model::LanguageModel& model,
                                                      std::string_view what);

}  // namespace locket::cli
