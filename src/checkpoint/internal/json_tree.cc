#include "checkpoint/internal/json_tree.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "checkpoint/internal/error_text.h"

namespace locket::checkpoint::internal {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 64;

// Receives the parser's events; returning false stops the parser.
class TreeBuilder {
 public:
  bool null() { return add(std::monostate()); }
  bool boolean(bool value) { return add(value); }
  bool number_integer(std::int64_t value) { return add(value); }
  bool number_unsigned(std::uint64_t value) {
    if (value <= INT64_MAX) return add(static_cast<std::int64_t>(value));
    return add(value);
  }
  bool number_float(double value, const std::string&) { return add(value); }
  bool string(std::string& value) { return add(std::move(value)); }
  bool binary(json::binary_t&) { return false; }
  bool key(std::string& key) {
    std::get<JsonValue::Object>(open_.back()->content).emplace_back().key = std::move(key);
    return true;
  }
  bool start_object(std::size_t) { return open<JsonValue::Object>(); }
  bool start_array(std::size_t) { return open<JsonValue::List>(); }
  bool end_object() {
    const auto& members = std::get<JsonValue::Object>(open_.back()->content);
    std::vector<std::string_view> keys;
    keys.reserve(members.size());
    for (const JsonMember& member : members) keys.push_back(member.key);
    std::ranges::sort(keys);
    const auto twin = std::ranges::adjacent_find(keys);
    if (twin != keys.end()) return stop(fmt::format("key \"{}\" occurs twice", printable(*twin)));
    open_.pop_back();
    return true;
  }
  bool end_array() {
    open_.pop_back();
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) {
    return stop(fmt::format("not valid JSON at byte {}", position));
  }

  JsonValue take_root() { return std::move(root_); }
  const std::string& problem() const { return problem_; }

 private:
  bool stop(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }

  // Where the next value goes. Only the innermost container grows, so the pointers in open_ stay
  // valid.
  JsonValue& next_slot() {
    if (open_.empty()) return root_;
    if (auto* list = std::get_if<JsonValue::List>(&open_.back()->content)) {
      return list->emplace_back();
    }
    return std::get<JsonValue::Object>(open_.back()->content).back().value;
  }

  template <class Content>
  bool add(Content content) {
    next_slot().content.template emplace<Content>(std::move(content));
    return true;
  }

  template <class Container>
  bool open() {
    if (open_.size() == kMaxDepth) {
      return stop(fmt::format("nested more than {} levels deep", kMaxDepth));
    }
    JsonValue& slot = next_slot();
    slot.content.template emplace<Container>();
    open_.push_back(&slot);
    return true;
  }

  JsonValue root_;
  std::vector<JsonValue*> open_;
  std::string problem_;
};

}  // namespace

Result<JsonValue> parse_json(std::string_view text, std::string_view file_name) {
  if (is_lfs_pointer(text)) return refuse_lfs_pointer(file_name);
  // The parser would take a NUL for the end and pass over what follows.
  if (const std::size_t nul = text.find('\0'); nul != text.npos) {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("{}: not valid JSON at byte {}", file_name, nul + 1));
  }
  TreeBuilder builder;
  try {
    if (json::sax_parse(text.begin(), text.end(), &builder)) return builder.take_root();
  } catch (const std::exception& error) {
    return fail(ErrorCode::kBadCheckpoint, fmt::format("{}: {}", file_name, error.what()));
  }
  return fail(ErrorCode::kBadCheckpoint, fmt::format("{}: {}", file_name, builder.problem()));
}

const JsonMember* find_member(const JsonValue& value, std::string_view key) {
  const auto* members = std::get_if<JsonValue::Object>(&value.content);
  if (members == nullptr) return nullptr;
  const auto found = std::ranges::find(*members, key, &JsonMember::key);
  return found == members->end() ? nullptr : &*found;
}

std::string describe(const JsonValue& value) {
  struct Words {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool content) const { return content ? "true" : "false"; }
    std::string operator()(std::int64_t content) const { return fmt::format("{}", content); }
    std::string operator()(std::uint64_t content) const { return fmt::format("{}", content); }
    std::string operator()(double content) const { return fmt::format("the number {}", content); }
    std::string operator()(const std::string& content) const {
      return fmt::format("the string \"{}\"", printable(content));
    }
    std::string operator()(const JsonValue::List& content) const {
      return fmt::format("a list of {}", content.size());
    }
    std::string operator()(const JsonValue::Object&) const { return "an object"; }
  };
  return std::visit(Words(), value.content);
}

Result<std::string> json_quoted(std::string_view text) {
  try {
    return json(text).dump();
  } catch (const std::exception&) {
    return fail(ErrorCode::kBadRequest, fmt::format("\"{}\" is not UTF-8", printable(text)));
  }
}

}  // namespace locket::checkpoint::internal
