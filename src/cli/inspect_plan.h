// `locket inspect --plan`: what loading a model would put where, without loading it.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/options.h"

namespace locket::cli {

// From the headers of MODEL's files, or from its config.json alone where there are no weights.
// kOverBudget, with the numbers, if loading would be refused.
[[nodiscard]] Result<std::string> inspect_plan(const InspectOptions& options);

}  // namespace locket::cli
