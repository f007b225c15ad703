#include "checkpoint/config_json.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/file.h"
#include "checkpoint/internal/error_text.h"
#include "checkpoint/internal/json_tree.h"

namespace locket::checkpoint {
namespace {

using internal::JsonMember;
using internal::JsonValue;

constexpr std::uint64_t kMaxConfigBytes = std::uint64_t{1} << 24;

std::string join_path(std::string_view path, std::string_view key) {
  return path.empty() ? std::string(key) : fmt::format("{}.{}", path, key);
}

void collect_unread(const JsonValue& value, const std::string& path,
                    std::vector<std::string>& unread) {
  const auto* members = std::get_if<JsonValue::Object>(&value.content);
  if (members == nullptr) return;
  for (const JsonMember& member : *members) {
    const std::string member_path = join_path(path, internal::printable(member.key));
    if (member.is_read) {
      collect_unread(member.value, member_path, unread);
    } else {
      unread.push_back(member_path);
    }
  }
}

}  // namespace

struct ConfigFile::State {
  std::string file_name;
  std::string text;
  JsonValue root;
};

ConfigFile::ConfigFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ConfigFile::ConfigFile(ConfigFile&&) noexcept = default;
ConfigFile& ConfigFile::operator=(ConfigFile&&) noexcept = default;
ConfigFile::~ConfigFile() = default;

Result<ConfigFile> ConfigFile::open(const std::filesystem::path& path) {
  LOCKET_TRY(std::string text, read_whole_file(path, kMaxConfigBytes));
  return parse(std::move(text), path.string());
}

Result<ConfigFile> ConfigFile::parse(std::string text, std::string file_name) {
  LOCKET_TRY(JsonValue root, internal::parse_json(text, file_name));
  if (!std::holds_alternative<JsonValue::Object>(root.content)) {
    return fail(ErrorCode::kBadCheckpoint, fmt::format("{} holds {} (an object is needed)",
                                                       file_name, internal::describe(root)));
  }
  auto state = std::make_unique<State>();
  state->file_name = std::move(file_name);
  state->text = std::move(text);
  state->root = std::move(root);
  return ConfigFile(std::move(state));
}

ConfigObject ConfigFile::root() const { return {&state_->file_name, "", &state_->root}; }

const std::string& ConfigFile::text() const { return state_->text; }

ConfigObject::ConfigObject(const std::string* file_name, std::string path, const JsonValue* value)
    : file_name_(file_name), path_(std::move(path)), value_(value) {}

bool ConfigObject::has(std::string_view key) const {
  const JsonMember* member = internal::find_member(*value_, key);
  if (member == nullptr) return false;
  const bool is_null = std::holds_alternative<std::monostate>(member->value.content);
  if (is_null) member->is_read = true;
  return !is_null;
}

Result<const JsonValue*> ConfigObject::require(std::string_view key,
                                               std::string_view needed) const {
  const JsonMember* member = internal::find_member(*value_, key);
  if (member == nullptr) return refuse(key, needed);
  member->is_read = true;
  return &member->value;
}

tl::unexpected<Error> ConfigObject::refuse(std::string_view key, std::string_view needed) const {
  const JsonMember* member = internal::find_member(*value_, key);
  const std::string found = member == nullptr ? "missing" : internal::describe(member->value);
  return fail(ErrorCode::kBadCheckpoint, fmt::format("{}: {} is {} ({} is needed)", *file_name_,
                                                     join_path(path_, key), found, needed));
}

Result<std::int64_t> ConfigObject::integer(std::string_view key) const {
  constexpr std::string_view kNeeded = "an integer";
  LOCKET_TRY(const JsonValue* value, require(key, kNeeded));
  if (const auto* content = std::get_if<std::int64_t>(&value->content)) return *content;
  return refuse(key, kNeeded);
}

Result<std::int64_t> ConfigObject::integer_in(std::string_view key, IntegerRange range) const {
  LOCKET_TRY(const std::int64_t value, integer(key));
  if (value >= range.least && value <= range.most) return value;
  return refuse(key, fmt::format("an integer from {} to {}", range.least, range.most));
}

Result<double> ConfigObject::number(std::string_view key) const {
  constexpr std::string_view kNeeded = "a number";
  LOCKET_TRY(const JsonValue* value, require(key, kNeeded));
  if (const auto* content = std::get_if<double>(&value->content)) return *content;
  if (const auto* content = std::get_if<std::int64_t>(&value->content)) {
    return static_cast<double>(*content);
  }
  if (const auto* content = std::get_if<std::uint64_t>(&value->content)) {
    return static_cast<double>(*content);
  }
  return refuse(key, kNeeded);
}

Result<bool> ConfigObject::boolean(std::string_view key) const {
  constexpr std::string_view kNeeded = "true or false";
  LOCKET_TRY(const JsonValue* value, require(key, kNeeded));
  if (const auto* content = std::get_if<bool>(&value->content)) return *content;
  return refuse(key, kNeeded);
}

Result<std::string> ConfigObject::string(std::string_view key) const {
  constexpr std::string_view kNeeded = "a string";
  LOCKET_TRY(const JsonValue* value, require(key, kNeeded));
  if (const auto* content = std::get_if<std::string>(&value->content)) return *content;
  return refuse(key, kNeeded);
}

Result<std::string> ConfigObject::string_of(std::string_view key,
                                            std::initializer_list<std::string_view> known) const {
  LOCKET_TRY(std::string value, string(key));
  if (std::ranges::find(known, value) != known.end()) return value;
  Error error = refuse(key, fmt::format("one of {}", fmt::join(known, ", "))).value();
  error.code = ErrorCode::kUnsupported;
  return tl::make_unexpected(std::move(error));
}

template <class Item>
Result<std::vector<Item>> ConfigObject::list(std::string_view key, std::string_view needed) const {
  LOCKET_TRY(const JsonValue* value, require(key, needed));
  const auto* items = std::get_if<JsonValue::List>(&value->content);
  if (items == nullptr) return refuse(key, needed);
  std::vector<Item> contents;
  for (const JsonValue& item : *items) {
    const auto* content = std::get_if<Item>(&item.content);
    if (content == nullptr) {
      return fail(
          ErrorCode::kBadCheckpoint,
          fmt::format("{}: {} holds {} at place {} ({} is needed)", *file_name_,
                      join_path(path_, key), internal::describe(item), contents.size(), needed));
    }
    contents.push_back(*content);
  }
  return contents;
}

Result<std::vector<std::int64_t>> ConfigObject::integer_list(std::string_view key) const {
  return list<std::int64_t>(key, "a list of integers");
}

Result<std::vector<std::string>> ConfigObject::string_list(std::string_view key) const {
  return list<std::string>(key, "a list of strings");
}

Result<ConfigObject> ConfigObject::object(std::string_view key) const {
  constexpr std::string_view kNeeded = "an object";
  LOCKET_TRY(const JsonValue* value, require(key, kNeeded));
  if (!std::holds_alternative<JsonValue::Object>(value->content)) return refuse(key, kNeeded);
  return ConfigObject(file_name_, join_path(path_, key), value);
}

std::vector<std::string> ConfigObject::unread_keys() const {
  std::vector<std::string> unread;
  collect_unread(*value_, path_, unread);
  return unread;
}

}  // namespace locket::checkpoint
