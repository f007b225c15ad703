// The thinking mode that an --effort option asks for.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/message.h"

namespace locket::cli {

// Empty or "none": chat mode; a number from 1 to 100 or a name: thinking with that effort.
// kBadRequest otherwise.
[[nodiscard]] Status apply_effort(std::string_view effort, chat::ChatRequest& request);

// Empty if apply_effort() takes it, else what is wrong with it, for the parser of options.
std::string check_effort(const std::string& effort);

}  // namespace locket::cli
