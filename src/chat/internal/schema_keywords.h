// What single keywords of a schema say: which fixed values, which lengths and patterns, which
// numbers. Pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "chat/internal/number_range.h"
#include "chat/internal/schema_reader.h"
#include "chat/internal/text_rules.h"

namespace locket::chat {

// The values of enum or const that have the leaf's type; nothing if the leaf lists none.
[[nodiscard]] Result<std::optional<std::vector<const JsonValue*>>> listed_values(
    const SchemaReader& reader, const SchemaLeaf& leaf);

// minLength and maxLength.
[[nodiscard]] Result<TextLength> text_length(const SchemaReader& reader, const SchemaLeaf& leaf);

// pattern or format; nothing if the leaf has none.
[[nodiscard]] Result<std::optional<CharAutomaton>> text_pattern(const SchemaReader& reader,
                                                                const SchemaLeaf& leaf);

// Whether the leaf bounds its numbers, and how.
[[nodiscard]] Result<std::optional<NumberLimits>> number_limits(const SchemaReader& reader,
                                                                const SchemaLeaf& leaf);

}  // namespace locket::chat
