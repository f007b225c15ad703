// Typed access to the members of a JSON object, with messages that name the field, what was found
// and what would be right. null counts as absent in every optional getter. Pure functions,
// thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "chat/json_value.h"

namespace locket::chat {

// "messages[2]" + "content" = "messages[2].content"; an empty path stands for the body itself.
std::string field_path(std::string_view path, std::string_view name);
std::string item_path(std::string_view path, std::size_t index);

// A bad_request "PATH is FOUND; it must be WANTED". Strings and numbers are shown, cut to 80 bytes.
tl::unexpected<Error> wrong_value(std::string_view path, const JsonValue& found,
                                  std::string_view wanted);
tl::unexpected<Error> missing_field(std::string_view path, std::string_view wanted);

// The member, or nullptr if it is absent or null.
const JsonValue* find_present(const JsonValue& object, std::string_view name);

// One object's members by name; `path` says where the object stands.
class Fields {
 public:
  // Both must outlive this.
  Fields(const JsonValue& object, std::string_view path) : object_(object), path_(path) {}

  [[nodiscard]] Result<std::optional<std::string>> optional_string(std::string_view name) const;
  [[nodiscard]] Result<std::string> required_string(std::string_view name) const;
  [[nodiscard]] Result<std::optional<bool>> optional_bool(std::string_view name) const;
  [[nodiscard]] Result<std::optional<std::int64_t>> optional_integer(std::string_view name,
                                                                     std::int64_t min,
                                                                     std::int64_t max) const;
  [[nodiscard]] Result<std::optional<double>> optional_number(std::string_view name, double min,
                                                              double max) const;
  // nullptr if absent or null.
  [[nodiscard]] Result<const JsonValue*> optional_object(std::string_view name) const;
  [[nodiscard]] Result<const JsonValue*> optional_array(std::string_view name) const;

  std::string path_of(std::string_view name) const { return field_path(path_, name); }

 private:
  const JsonValue& object_;
  std::string_view path_;
};

}  // namespace locket::chat
