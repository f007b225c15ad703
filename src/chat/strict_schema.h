// The subset of JSON Schema that strict tools and strict response formats may use, and the form in
// which prompts show it. Pure function, thread-safe.
#pragma once

#include <string_view>

#include "base/result.h"
#include "chat/json_value.h"

namespace locket::chat {

// Checks and normalises a strict schema: objects list all properties as required and allow no
// others (both are filled in where missing), titles and unused definitions are dropped; keys of an
// object stand in the order type, properties, additionalProperties, required, description,
// elsewhere type first and description last. kBadRequest names the place, the keyword and the rule.
// `path` names the schema.
[[nodiscard]] Result<JsonValue> normalize_strict_schema(const JsonValue& schema,
                                                        std::string_view path);

}  // namespace locket::chat
