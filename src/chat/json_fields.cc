#include "chat/json_fields.h"

#include <fmt/format.h>

#include "chat/json_number.h"
#include "chat/utf8.h"

namespace locket::chat {
namespace {

constexpr std::size_t kShownBytes = 80;

std::string shorten(std::string_view text) {
  if (text.size() <= kShownBytes) return std::string(text);
  std::string_view head = text.substr(0, kShownBytes);
  head.remove_suffix(incomplete_utf8_tail(head));
  return fmt::format("{}...", head);
}

std::string describe_value(const JsonValue& value) {
  if (value.is_string()) return fmt::format("\"{}\"", shorten(value.text));
  if (value.kind == JsonValue::Kind::kBool) return value.boolean ? "true" : "false";
  if (!value.text.empty()) return shorten(value.text);
  return std::string(describe_kind(value));
}

bool is_number(const JsonValue& value) {
  return value.kind == JsonValue::Kind::kInteger || value.kind == JsonValue::Kind::kFloat;
}

}  // namespace

std::string field_path(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

std::string item_path(std::string_view path, std::size_t index) {
  return fmt::format("{}[{}]", path, index);
}

tl::unexpected<Error> wrong_value(std::string_view path, const JsonValue& found,
                                  std::string_view wanted) {
  return fail(ErrorCode::kBadRequest,
              fmt::format("{} is {}; it must be {}", path, describe_value(found), wanted));
}

tl::unexpected<Error> missing_field(std::string_view path, std::string_view wanted) {
  return fail(ErrorCode::kBadRequest, fmt::format("{} is missing; it must be {}", path, wanted));
}

const JsonValue* find_present(const JsonValue& object, std::string_view name) {
  const JsonValue* value = object.find(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

Result<std::optional<std::string>> Fields::optional_string(std::string_view name) const {
  const JsonValue* value = find_present(object_, name);
  if (value == nullptr) return std::optional<std::string>();
  if (!value->is_string()) return wrong_value(path_of(name), *value, "a string");
  return std::optional<std::string>(value->text);
}

Result<std::string> Fields::required_string(std::string_view name) const {
  const JsonValue* value = object_.find(name);
  if (value == nullptr) return missing_field(path_of(name), "a string");
  if (!value->is_string()) return wrong_value(path_of(name), *value, "a string");
  return value->text;
}

Result<std::optional<bool>> Fields::optional_bool(std::string_view name) const {
  const JsonValue* value = find_present(object_, name);
  if (value == nullptr) return std::optional<bool>();
  if (value->kind != JsonValue::Kind::kBool) {
    return wrong_value(path_of(name), *value, "true or false");
  }
  return std::optional<bool>(value->boolean);
}

Result<std::optional<std::int64_t>> Fields::optional_integer(std::string_view name,
                                                             std::int64_t min,
                                                             std::int64_t max) const {
  const JsonValue* value = find_present(object_, name);
  if (value == nullptr) return std::optional<std::int64_t>();
  std::optional<std::int64_t> number;
  if (value->kind == JsonValue::Kind::kInteger) number = read_int64(value->text);
  if (!number || *number < min || *number > max) {
    return wrong_value(path_of(name), *value, fmt::format("an integer from {} to {}", min, max));
  }
  return number;
}

Result<std::optional<double>> Fields::optional_number(std::string_view name, double min,
                                                      double max) const {
  const JsonValue* value = find_present(object_, name);
  if (value == nullptr) return std::optional<double>();
  std::optional<double> number;
  if (is_number(*value)) number = read_double(value->text);
  if (!number || *number < min || *number > max) {
    return wrong_value(path_of(name), *value, fmt::format("a number from {} to {}", min, max));
  }
  return number;
}

Result<const JsonValue*> Fields::optional_object(std::string_view name) const {
  const JsonValue* value = find_present(object_, name);
  if (value != nullptr && !value->is_object()) {
    return wrong_value(path_of(name), *value, "an object");
  }
  return value;
}

Result<const JsonValue*> Fields::optional_array(std::string_view name) const {
  const JsonValue* value = find_present(object_, name);
  if (value != nullptr && !value->is_array()) return wrong_value(path_of(name), *value, "a list");
  return value;
}

}  // namespace locket::chat
