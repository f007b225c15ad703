#include "chat/json_value.h"

#include <utility>

#include "base/check.h"

namespace locket::chat {

const JsonValue* JsonValue::find(std::string_view name) const {
  for (const JsonMember& member : members) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

JsonValue json_string(std::string text) {
  JsonValue value;
  value.kind = JsonValue::Kind::kString;
  value.text = std::move(text);
  return value;
}

std::string_view describe_kind(const JsonValue& value) {
  switch (value.kind) {
    case JsonValue::Kind::kNull:
      return "null";
    case JsonValue::Kind::kBool:
      return "a boolean";
    case JsonValue::Kind::kInteger:
      return "an integer";
    case JsonValue::Kind::kFloat:
      return "a number";
    case JsonValue::Kind::kString:
      return "a string";
    case JsonValue::Kind::kArray:
      return "a list";
    case JsonValue::Kind::kObject:
      return "an object";
    case JsonValue::Kind::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace locket::chat
