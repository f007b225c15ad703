// Reads a JSON schema as a choice of leaves: references are followed, alternatives and lists of
// types are spread out, until every leaf has one type. Recursion is fine; a schema that is only a
// reference to itself has no leaf.
//
// A strict reader refuses what the subset does not hold (kBadRequest with place, keyword and rule).
// A loose one leaves such keywords out, which only allows more.
//
// Immutable, thread-safe. The schema must outlive the reader and what it returns.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "chat/json_value.h"

namespace locket::chat {

enum class Strictness { kStrict, kLoose, kCount };

enum class SchemaType {
  kObject,
  kArray,
  kString,
  kInteger,
  kNumber,
  kBoolean,
  kNull,
  kAny,
  kCount
};

struct SchemaLeaf {
  const JsonValue* schema = nullptr;  // nullptr: no keywords
  SchemaType type = SchemaType::kAny;
  std::string path;

  // The keyword's value, or nullptr.
  const JsonValue* find(std::string_view keyword) const {
    return schema == nullptr ? nullptr : schema->find(keyword);
  }
};

// The members that an object may have, in the order in which they are written.
struct ObjectShape {
  struct Member {
    std::string_view name;
    const JsonValue* schema = nullptr;  // nullptr: anything
    bool is_required = false;
    std::string path;
  };

  std::vector<Member> members;
  bool allows_others = false;
  const JsonValue* others = nullptr;  // nullptr: anything
  std::string others_path;
};

class SchemaReader {
 public:
  static constexpr std::size_t kMaxLeaves = 2000;
  static constexpr std::size_t kMaxCount = 8192;  // of characters and of items

  SchemaReader(const JsonValue& root, std::string path, Strictness strictness)
      : root_(root), root_path_(std::move(path)), strictness_(strictness) {}

  const JsonValue& root() const { return root_; }
  const std::string& root_path() const { return root_path_; }

  [[nodiscard]] Result<std::vector<SchemaLeaf>> leaves(const JsonValue& schema,
                                                       std::string_view path) const;

  // REQUIRES: an object leaf.
  [[nodiscard]] Result<ObjectShape> object_shape(const SchemaLeaf& leaf) const;

  // A number of characters or items. Nothing if the keyword is absent, or wrong in a loose schema.
  [[nodiscard]] Result<std::optional<std::size_t>> count(const SchemaLeaf& leaf,
                                                         std::string_view keyword) const;

  // The error of a strict reader; a loose one goes on.
  [[nodiscard]] Status refuse(std::string_view path, std::string_view rule) const;
  [[nodiscard]] Status refuse_value(std::string_view path, const JsonValue& value,
                                    std::string_view wanted) const;

 private:
  struct Place {
    const JsonValue* schema = nullptr;
    std::string path;
  };
  using Places = std::vector<Place>;

  Result<Places> alternatives(const Place& place) const;
  Result<Place> resolve(const JsonValue& reference, std::string_view path) const;
  Status check_keywords(const Place& place) const;
  Status check_alone(const Place& place, std::string_view keyword) const;
  Status add_typed_leaves(const Place& place, std::vector<SchemaLeaf>& out) const;
  Status require(const JsonValue& names, std::string_view path, ObjectShape& shape) const;

  const JsonValue& root_;
  std::string root_path_;
  Strictness strictness_;
};

}  // namespace locket::chat
