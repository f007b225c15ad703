// "input" of the Responses format: a text, or items, of which neighbouring reasoning, text and
// calls of the model become one assistant message. Checks the calls: every one has an id of its own
// and a result. Pure function, thread-safe if `items` is.
#pragma once

#include <vector>

#include "base/result.h"
#include "chat/issued_items.h"
#include "chat/json_value.h"
#include "chat/message.h"

namespace locket::chat {

// kBadRequest names the item and the field; kUnsupported for files. References are looked up in
// `items`: an unknown reasoning item is left out, any other unknown one is refused.
[[nodiscard]] Result<std::vector<Message>> parse_responses_input(const JsonValue& body,
                                                                 const IssuedItems& items);

}  // namespace locket::chat
