// A request from the JSON body of the Responses format. Every refusal names the field, the value
// found and what would be right. Nothing of earlier requests is kept here: what a client sends is
// the whole conversation, but for references to items, which `items` resolves. Pure function,
// thread-safe if `items` is.
#pragma once

#include <string_view>

#include "base/result.h"
#include "chat/issued_items.h"
#include "chat/message.h"

namespace locket::chat {

// kBadRequest, or kUnsupported for files.
[[nodiscard]] Result<ChatRequest> parse_responses_request(std::string_view json,
                                                          const IssuedItems& items);

}  // namespace locket::chat
