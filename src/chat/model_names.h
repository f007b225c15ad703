// What the name of a model in a request says beside which model is meant. Pure functions,
// thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/message.h"

namespace locket::chat {

// The name without the suffix "[1m]", by which clients ask for a long context; the hosted service's
// other names of its flash model (deepseek-v4-flash, deepseek-v4-flash-vision-exp, deepseek-chat,
// deepseek-reasoner) become "deepseek-flash". Other names stay.
std::string canonical_model_name(std::string_view name);

// Whether the name itself asks for thinking (deepseek-reasoner) or for none (deepseek-chat).
std::optional<ThinkingMode> thinking_of_model_name(std::string_view name);

}  // namespace locket::chat
