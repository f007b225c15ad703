#include "chat/internal/schema_keywords.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

#include "base/check.h"
#include "chat/json_fields.h"

namespace locket::chat {
namespace {

bool has_type(const JsonValue& value, SchemaType type) {
  switch (type) {
    case SchemaType::kObject:
      return value.is_object();
    case SchemaType::kArray:
      return value.is_array();
    case SchemaType::kString:
      return value.is_string();
    case SchemaType::kInteger:
      return value.kind == JsonValue::Kind::kInteger;
    case SchemaType::kNumber:
      return value.kind == JsonValue::Kind::kInteger || value.kind == JsonValue::Kind::kFloat;
    case SchemaType::kBoolean:
      return value.kind == JsonValue::Kind::kBool;
    case SchemaType::kNull:
      return value.is_null();
    case SchemaType::kAny:
      return true;
    case SchemaType::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

// Keywords that would have to be tested on every listed value.
constexpr std::string_view kBesideList[] = {
    "properties", "required",         "additionalProperties",
    "items",      "minItems",         "maxItems",
    "pattern",    "format",           "minimum",
    "maximum",    "exclusiveMinimum", "exclusiveMaximum",
    "multipleOf", "minLength",        "maxLength"};

Status take_bound(const SchemaReader& reader, const SchemaLeaf& leaf, std::string_view keyword,
                  std::optional<NumberBound>& bound) {
  const JsonValue* value = leaf.find(keyword);
  if (value == nullptr) return {};
  std::optional<Decimal> decimal;
  if (has_type(*value, SchemaType::kNumber)) decimal = read_decimal(value->text);
  if (!decimal) {
    return reader.refuse_value(field_path(leaf.path, keyword), *value,
                               "a number of at most 60 digits on each side of the point");
  }
  if (bound) {
    return reader.refuse(field_path(leaf.path, keyword),
                         "stands beside its exclusive form, which is not supported");
  }
  bound = NumberBound{*decimal, keyword.starts_with("exclusive")};
  return {};
}

Status take_step(const SchemaReader& reader, const SchemaLeaf& leaf, NumberLimits& limits) {
  const JsonValue* value = leaf.find("multipleOf");
  if (value == nullptr) return {};
  std::optional<Decimal> decimal;
  if (has_type(*value, SchemaType::kNumber)) decimal = read_decimal(value->text);
  const bool is_short = decimal && !decimal->is_negative && !decimal->is_zero() &&
                        decimal->fraction.size() <= kMaxStepPlaces && decimal->whole.size() <= 4;
  std::uint64_t step = 0;
  if (is_short) {
    for (const char digit : decimal->whole + decimal->fraction) {
      step = step * 10 + static_cast<std::uint64_t>(digit - '0');
    }
  }
  if (step == 0 || step > kMaxStep) {
    return reader.refuse_value(field_path(leaf.path, "multipleOf"), *value,
                               fmt::format("above 0, with at most {} decimals, and at most {} "
                                           "without its point",
                                           kMaxStepPlaces, kMaxStep));
  }
  limits.step = static_cast<std::uint32_t>(step);
  limits.step_places = decimal->fraction.size();
  return {};
}

}  // namespace

Result<std::optional<std::vector<const JsonValue*>>> listed_values(const SchemaReader& reader,
                                                                   const SchemaLeaf& leaf) {
  using Values = std::optional<std::vector<const JsonValue*>>;
  const JsonValue* list = leaf.find("enum");
  const JsonValue* single = leaf.find("const");
  if (list != nullptr && single != nullptr) {
    LOCKET_TRY_STATUS(reader.refuse(field_path(leaf.path, "const"),
                                    "stands beside enum, which is not supported"));
  }
  if (list != nullptr && (!list->is_array() || list->items.empty())) {
    LOCKET_TRY_STATUS(
        reader.refuse_value(field_path(leaf.path, "enum"), *list, "a list of values"));
    list = nullptr;
  }
  if (list == nullptr && single == nullptr) return Values();
  for (const std::string_view keyword : kBesideList) {
    if (leaf.find(keyword) == nullptr) continue;
    LOCKET_TRY_STATUS(reader.refuse(field_path(leaf.path, keyword),
                                    "stands beside enum or const, which is not supported; list "
                                    "only values that fit"));
  }
  Values values(std::in_place);
  if (list == nullptr) {
    if (has_type(*single, leaf.type)) values->push_back(single);
    return values;
  }
  for (const JsonValue& value : list->items) {
    if (has_type(value, leaf.type)) values->push_back(&value);
  }
  return values;
}

Result<TextLength> text_length(const SchemaReader& reader, const SchemaLeaf& leaf) {
  LOCKET_TRY(const std::optional<std::size_t> min, reader.count(leaf, "minLength"));
  LOCKET_TRY(const std::optional<std::size_t> max, reader.count(leaf, "maxLength"));
  return TextLength{min.value_or(0), max};
}

Result<std::optional<CharAutomaton>> text_pattern(const SchemaReader& reader,
                                                  const SchemaLeaf& leaf) {
  using Pattern = std::optional<CharAutomaton>;
  const JsonValue* pattern = leaf.find("pattern");
  const JsonValue* format = leaf.find("format");
  if (pattern != nullptr && format != nullptr) {
    LOCKET_TRY_STATUS(reader.refuse(field_path(leaf.path, "format"),
                                    "stands beside pattern, which is not supported"));
  }
  const bool is_pattern = pattern != nullptr;
  const std::string path = field_path(leaf.path, is_pattern ? "pattern" : "format");
  const JsonValue* given = is_pattern ? pattern : format;
  if (given == nullptr) return Pattern();
  if (!given->is_string()) {
    LOCKET_TRY_STATUS(reader.refuse_value(path, *given, "a string"));
    return Pattern();
  }
  std::optional<std::string_view> text = given->text;
  if (!is_pattern) text = format_pattern(given->text);
  if (!text) {
    LOCKET_TRY_STATUS(reader.refuse_value(path, *given, "one of " + format_names()));
    return Pattern();
  }
  Result<CharAutomaton> compiled = compile_regex(*text);
  if (compiled) return Pattern(*std::move(compiled));
  LOCKET_TRY_STATUS(reader.refuse(path, compiled.error().message));
  return Pattern();
}

Result<std::optional<NumberLimits>> number_limits(const SchemaReader& reader,
                                                  const SchemaLeaf& leaf) {
  NumberLimits limits;
  LOCKET_TRY_STATUS(take_bound(reader, leaf, "minimum", limits.low));
  LOCKET_TRY_STATUS(take_bound(reader, leaf, "exclusiveMinimum", limits.low));
  LOCKET_TRY_STATUS(take_bound(reader, leaf, "maximum", limits.high));
  LOCKET_TRY_STATUS(take_bound(reader, leaf, "exclusiveMaximum", limits.high));
  LOCKET_TRY_STATUS(take_step(reader, leaf, limits));
  const bool is_bounded = limits.low || limits.high || limits.step != 0;
  if (!is_bounded) return std::optional<NumberLimits>();
  if (leaf.type == SchemaType::kInteger) limits.fraction = NumberLimits::Fraction::kNone;
  return std::optional(limits);
}

}  // namespace locket::chat
