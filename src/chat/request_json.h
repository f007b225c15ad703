// A chat request from the JSON body of the chat completions format. Every refusal is a bad_request
// whose message names the field, the value found and what would be right, so that the client's
// author can act on it; kUnsupported for what is known and not offered. Names that nothing reads
// are allowed and listed. Pure functions, thread-safe.
#pragma once

#include <string_view>

#include "base/result.h"
#include "chat/message.h"

namespace locket::chat {

[[nodiscard]] Result<ChatRequest> parse_chat_request(std::string_view json);

// The effort of a name as clients send it: minimal and low 50, medium, high and xhigh 75, max and
// ultra 100. kBadRequest names the field, the value and the names known.
[[nodiscard]] Result<int> effort_of_name(std::string_view name,
                                         std::string_view field = "reasoning_effort");

}  // namespace locket::chat
