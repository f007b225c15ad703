// A parsed JSON text as plain values, for files that are small enough to be kept as a tree.
// Members keep the order of the file; no key occurs twice in an object; nesting is limited.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace locket::checkpoint::internal {

struct JsonMember;

struct JsonValue {
  using List = std::vector<JsonValue>;
  using Object = std::vector<JsonMember>;
  // A whole number is an int64_t if it fits, else a uint64_t.
  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, List, Object>
      content;
};

struct JsonMember {
  std::string key;
  JsonValue value;
  // Set by readers that keep track of what they used; says nothing about the value.
  mutable bool is_read = false;
};

// kBadCheckpoint with `file_name` and the position; a Git LFS pointer is named as such.
[[nodiscard]] Result<JsonValue> parse_json(std::string_view text, std::string_view file_name);

// nullptr if the value is no object or has no such key.
const JsonMember* find_member(const JsonValue& value, std::string_view key);

// What a value is, for messages: the string "abc", the number 1.5, a list of 3, an object, null.
std::string describe(const JsonValue& value);

// `text` as a JSON string with its quotes. kBadRequest if it is not UTF-8.
[[nodiscard]] Result<std::string> json_quoted(std::string_view text);

}  // namespace locket::checkpoint::internal
