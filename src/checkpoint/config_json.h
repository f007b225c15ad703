// config.json with typed, required getters: no key has a default. Errors name the file, the path of
// the key, what was found and what is needed. Every key that was read is remembered, so that the
// rest can be listed in one line. Integers keep all 64 bits.
// A ConfigObject is a view into its ConfigFile, which must outlive it (moving the file is fine).
// Not thread-safe: getters remember what was read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace locket::checkpoint {

namespace internal {
struct JsonValue;
}

class ConfigFile;

// Bounds of an integer, both included.
struct IntegerRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
};

class ConfigObject {
 public:
  // The key is there and is not null. Asking for a null counts as reading it.
  bool has(std::string_view key) const;

  [[nodiscard]] Result<std::int64_t> integer(std::string_view key) const;
  [[nodiscard]] Result<std::int64_t> integer_in(std::string_view key, IntegerRange range) const;
  // Integers are numbers, too.
  [[nodiscard]] Result<double> number(std::string_view key) const;
  [[nodiscard]] Result<bool> boolean(std::string_view key) const;
  [[nodiscard]] Result<std::string> string(std::string_view key) const;
  // A string that must be one of `known`; kUnsupported with the known values if it is not.
  [[nodiscard]] Result<std::string> string_of(std::string_view key,
                                              std::initializer_list<std::string_view> known) const;
  [[nodiscard]] Result<std::vector<std::int64_t>> integer_list(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::string>> string_list(std::string_view key) const;
  [[nodiscard]] Result<ConfigObject> object(std::string_view key) const;

  // The error for a value that a rule of the caller forbids:
  // "config.json: text_config.head_dim is 7 (an even number is needed)".
  [[nodiscard]] tl::unexpected<Error> refuse(std::string_view key, std::string_view needed) const;

  // Paths of keys that no getter asked for, in file order. An object that was never asked for
  // counts as one key; one that was asked for lists its own keys.
  std::vector<std::string> unread_keys() const;

 private:
  friend class ConfigFile;
  ConfigObject(const std::string* file_name, std::string path, const internal::JsonValue* value);
  [[nodiscard]] Result<const internal::JsonValue*> require(std::string_view key,
                                                           std::string_view needed) const;
  template <class Item>
  [[nodiscard]] Result<std::vector<Item>> list(std::string_view key, std::string_view needed) const;

  const std::string* file_name_;
  std::string path_;  // "" or "text_config"
  const internal::JsonValue* value_;
};

class ConfigFile {
 public:
  [[nodiscard]] static Result<ConfigFile> open(const std::filesystem::path& path);
  // `file_name` is used in errors.
  [[nodiscard]] static Result<ConfigFile> parse(std::string text, std::string file_name);

  ConfigFile(ConfigFile&&) noexcept;
  ConfigFile& operator=(ConfigFile&&) noexcept;
  ~ConfigFile();

  ConfigObject root() const;
  // The file as it was read.
  const std::string& text() const;

 private:
  struct State;
  explicit ConfigFile(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace locket::checkpoint
