// JSON as a client wrote it: keys in their order, numbers as digits, so that a schema or an
// argument can be written into a prompt without changing what the client said. The general JSON
// library is not used here because it rounds integers above 64 bits and cannot name the field of a
// broken string.
//
// A name that occurs twice in an object keeps its first place and its last value. Immutable use is
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace locket::chat {

struct JsonMember;

struct JsonValue {
  enum class Kind { kNull, kBool, kInteger, kFloat, kString, kArray, kObject, kCount };

  Kind kind = Kind::kNull;
  bool boolean = false;
  std::string text;                 // kString: UTF-8; kInteger, kFloat: the digits as written
  std::vector<JsonValue> items;     // kArray
  std::vector<JsonMember> members;  // kObject, no name twice

  bool is_null() const { return kind == Kind::kNull; }
  bool is_string() const { return kind == Kind::kString; }
  bool is_array() const { return kind == Kind::kArray; }
  bool is_object() const { return kind == Kind::kObject; }

  // The member of that name, or nullptr (also when this is not an object).
  const JsonValue* find(std::string_view name) const;
};

struct JsonMember {
  std::string name;
  JsonValue value;
};

JsonValue json_string(std::string text);

// How messages call a value: "null", "a number", "a list", ...
std::string_view describe_kind(const JsonValue& value);

}  // namespace locket::chat
