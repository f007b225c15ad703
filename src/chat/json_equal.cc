#include "chat/json_equal.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/check.h"
#include "chat/json_number.h"
#include "chat/json_reader.h"

namespace locket::chat {
namespace {

using Kind = JsonValue::Kind;

bool is_number(const JsonValue& value) {
  return value.kind == Kind::kInteger || value.kind == Kind::kFloat;
}

bool is_same_number(const JsonValue& a, const JsonValue& b) {
  if (a.text == b.text) return true;
  if (a.kind == Kind::kInteger && b.kind == Kind::kInteger) {
    const auto is_zero = [](const JsonValue& value) {
      return value.text == "0" || value.text == "-0";
    };
    return is_zero(a) && is_zero(b);
  }
  return read_double(a.text) == read_double(b.text);
}

std::vector<const JsonMember*> sorted_members(const JsonValue& value) {
  std::vector<const JsonMember*> members;
  members.reserve(value.members.size());
  for (const JsonMember& member : value.members) members.push_back(&member);
  std::ranges::sort(members, {},
                    [](const JsonMember* member) -> const std::string& { return member->name; });
  return members;
}

bool is_same_object(const JsonValue& a, const JsonValue& b) {
  if (a.members.size() != b.members.size()) return false;
  const std::vector<const JsonMember*> of_a = sorted_members(a);
  const std::vector<const JsonMember*> of_b = sorted_members(b);
  return std::ranges::equal(of_a, of_b, [](const JsonMember* left, const JsonMember* right) {
    return left->name == right->name && is_same_json(left->value, right->value);
  });
}

}  // namespace

bool is_same_json(const JsonValue& a, const JsonValue& b) {
  if (is_number(a) && is_number(b)) return is_same_number(a, b);
  if (a.kind != b.kind) return false;
  switch (a.kind) {
    case Kind::kNull:
      return true;
    case Kind::kBool:
      return a.boolean == b.boolean;
    case Kind::kString:
      return a.text == b.text;
    case Kind::kArray:
      return std::ranges::equal(a.items, b.items, is_same_json);
    case Kind::kObject:
      return is_same_object(a, b);
    case Kind::kInteger:
    case Kind::kFloat:
    case Kind::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

bool is_same_arguments(std::string_view a, std::string_view b) {
  if (a == b) return true;
  const Result<JsonValue> value_a = read_json(a, "arguments");
  if (!value_a) return false;
  const Result<JsonValue> value_b = read_json(b, "arguments");
  return value_b && is_same_json(*value_a, *value_b);
}

}  // namespace locket::chat
