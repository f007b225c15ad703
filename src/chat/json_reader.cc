#include "chat/json_reader.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <optional>
#include <unordered_map>
#include <utility>

#include "chat/json_number.h"
#include "chat/utf8.h"

namespace locket::chat {
namespace {

// From this size on an object's names are looked up in a table, so that hostile objects stay
// linear.
constexpr std::size_t kTableMembers = 16;

// Where a value stands, as a chain of stack frames from the innermost outwards.
struct Place {
  const Place* parent = nullptr;
  std::string_view name;  // of an object's member; unused for a list's item
  std::size_t index = 0;  // of a list's item
  bool is_member = false;
};

std::string path_text(const Place* place) {
  if (place == nullptr) return "";
  std::string path = path_text(place->parent);
  if (!place->is_member) return path + fmt::format("[{}]", place->index);
  if (!path.empty()) path += '.';
  return path.append(place->name);
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view what, const JsonLimits& limits)
      : text_(text), what_(what), limits_(limits) {}

  Result<JsonValue> read_document() {
    JsonValue value;
    skip_spaces();
    LOCKET_TRY_STATUS(read_value(value, nullptr, 0));
    skip_spaces();
    if (position_ < text_.size()) {
      return problem(nullptr, position_, "text after the end of the value");
    }
    return value;
  }

 private:
  tl::unexpected<Error> problem(const Place* place, std::size_t offset,
                                std::string_view problem_text) const {
    const std::string path = path_text(place);
    return fail(ErrorCode::kBadRequest,
                fmt::format("{} is not valid JSON: {} at byte offset {}{}{}", what_, problem_text,
                            offset, path.empty() ? "" : ", in ", path));
  }

  tl::unexpected<Error> unexpected(const Place* place, std::string_view wanted) const {
    if (position_ >= text_.size()) {
      return problem(place, position_, fmt::format("the text ends where {} should be", wanted));
    }
    const auto byte = static_cast<unsigned char>(text_[position_]);
    const std::string found = byte > 0x20 && byte < 0x7F ? fmt::format("'{}'", text_[position_])
                                                         : fmt::format("byte 0x{:02x}", byte);
    return problem(place, position_, fmt::format("{} found where {} should be", found, wanted));
  }

  bool at(char byte) const { return position_ < text_.size() && text_[position_] == byte; }

  bool take(char byte) {
    if (!at(byte)) return false;
    ++position_;
    return true;
  }

  void skip_spaces() {
    while (at(' ') || at('\n') || at('\t') || at('\r')) ++position_;
  }

  bool take_word(std::string_view word) {
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }

  Status read_value(JsonValue& value, const Place* place, int level) {
    if (level > limits_.levels) {
      return problem(place, position_, fmt::format("more than {} levels", limits_.levels));
    }
    if (!is_skipping_) LOCKET_TRY_STATUS(count_value(place));
    if (at('{')) return read_object(value, place, level);
    if (at('[')) return read_array(value, place, level);
    if (at('"')) {
      value.kind = JsonValue::Kind::kString;
      return read_string(value.text, place);
    }
    if (take_word("null")) return {};
    if (at('-') || (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9'))
      return read_number(value, place);
    value.kind = JsonValue::Kind::kBool;
    if (take_word("true")) {
      value.boolean = true;
      return {};
    }
    if (take_word("false")) return {};
    return unexpected(place, "a value");
  }

  Status count_value(const Place* place) {
    if (++value_count_ <= limits_.values) return {};
    return problem(place, position_, fmt::format("more than {} values", limits_.values));
  }

  Status read_array(JsonValue& value, const Place* place, int level) {
    value.kind = JsonValue::Kind::kArray;
    std::size_t index = 0;
    ++position_;
    skip_spaces();
    if (take(']')) return {};
    while (true) {
      const Place item{place, {}, index++, false};
      JsonValue skipped;
      JsonValue& target = is_skipping_ ? skipped : value.items.emplace_back();
      skip_spaces();
      LOCKET_TRY_STATUS(read_value(target, &item, level + 1));
      skip_spaces();
      if (take(']')) return {};
      if (!take(',')) return unexpected(place, "',' or ']'");
    }
  }

  Status read_object(JsonValue& value, const Place* place, int level) {
    value.kind = JsonValue::Kind::kObject;
    std::unordered_map<std::string, std::size_t> table;
    ++position_;
    skip_spaces();
    if (take('}')) return {};
    while (true) {
      skip_spaces();
      if (!at('"')) return unexpected(place, "a name in quotes");
      std::string name;
      LOCKET_TRY_STATUS(read_string(name, place));
      skip_spaces();
      if (!take(':')) return unexpected(place, "':'");
      skip_spaces();
      JsonValue member;
      const Place inner{place, name, 0, true};
      if (level == 0 && !is_wanted(name)) {
        LOCKET_TRY_STATUS(skip_value(&inner));
      } else {
        LOCKET_TRY_STATUS(read_value(member, &inner, level + 1));
      }
      if (!is_skipping_) set_member(value, std::move(name), std::move(member), table);
      skip_spaces();
      if (take('}')) return {};
      if (!take(',')) return unexpected(place, "',' or '}'");
    }
  }

  bool is_wanted(std::string_view name) const {
    const auto& wanted = limits_.wanted;
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  }

  // A member of the outermost object.
  Status skip_value(const Place* place) {
    LOCKET_TRY_STATUS(count_value(place));
    JsonValue skipped;
    is_skipping_ = true;
    LOCKET_TRY_STATUS(read_value(skipped, place, 1));
    is_skipping_ = false;
    return {};
  }

  static void set_member(JsonValue& object, std::string name, JsonValue member,
                         std::unordered_map<std::string, std::size_t>& table) {
    std::vector<JsonMember>& members = object.members;
    if (table.empty() && members.size() >= kTableMembers) {
      for (std::size_t index = 0; index < members.size(); ++index)
        table.emplace(members[index].name, index);
    }
    std::size_t index = 0;
    if (!table.empty()) {
      index = table.try_emplace(name, members.size()).first->second;
    } else {
      while (index < members.size() && members[index].name != name) ++index;
    }
    if (index < members.size()) {
      members[index].value = std::move(member);
    } else {
      members.push_back({std::move(name), std::move(member)});
    }
  }

  std::size_t skip_digits() {
    const std::size_t start = position_;
    while (position_ < text_.size() && text_[position_] >= '0' && text_[position_] <= '9')
      ++position_;
    return position_ - start;
  }

  Status read_number(JsonValue& value, const Place* place) {
    const std::size_t start = position_;
    value.kind = JsonValue::Kind::kInteger;
    take('-');
    if (!take('0') && skip_digits() == 0) return unexpected(place, "a digit");
    if (take('.')) {
      value.kind = JsonValue::Kind::kFloat;
      if (skip_digits() == 0) return unexpected(place, "a digit");
    }
    if (take('e') || take('E')) {
      value.kind = JsonValue::Kind::kFloat;
      if (!take('+')) take('-');
      if (skip_digits() == 0) return unexpected(place, "a digit");
    }
    value.text = std::string(text_.substr(start, position_ - start));
    if (value.kind == JsonValue::Kind::kFloat && !read_double(value.text).has_value()) {
      return problem(place, start, "a number that is too large for a double");
    }
    return {};
  }

  // REQUIRES: at the opening quote.
  Status read_string(std::string& out, const Place* place) {
    ++position_;
    while (position_ < text_.size()) {
      const char byte = text_[position_];
      if (byte == '"') {
        ++position_;
        return {};
      }
      if (byte == '\\') {
        LOCKET_TRY_STATUS(read_escape(out, place));
        continue;
      }
      if (static_cast<unsigned char>(byte) < 0x20) {
        return problem(place, position_,
                       fmt::format("control character 0x{:02x} in a string, which must be escaped,",
                                   static_cast<unsigned char>(byte)));
      }
      const std::size_t length = utf8_character_bytes(text_.substr(position_));
      if (length == 0) {
        return problem(
            place, position_,
            fmt::format("byte 0x{:02x}, which is not UTF-8,", static_cast<unsigned char>(byte)));
      }
      out.append(text_.substr(position_, length));
      position_ += length;
    }
    return unexpected(place, "the closing quote of a string");
  }

  Status read_escape(std::string& out, const Place* place) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    const std::size_t start = position_;
    ++position_;
    if (position_ >= text_.size()) return unexpected(place, "the rest of an escape");
    if (text_[position_] == 'u') return read_unicode_escape(out, place);
    const std::size_t which = kLetters.find(text_[position_]);
    if (which == std::string_view::npos) {
      const std::size_t length = utf8_character_bytes(text_.substr(position_));
      return problem(place, start,
                     fmt::format("unknown escape \\{} (a backslash itself is written \\\\)",
                                 text_.substr(position_, length)));
    }
    out.push_back(kMeanings[which]);
    ++position_;
    return {};
  }

  // The four digits after \u, or none. Leaves the position behind them.
  std::optional<std::uint32_t> read_code_unit() {
    std::uint32_t unit = 0;
    const std::string_view digits = text_.substr(position_ + 1, 4);
    if (digits.size() < 4) return std::nullopt;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + 4, unit, 16);
    if (error != std::errc() || end != digits.data() + 4) return std::nullopt;
    position_ += 5;
    return unit;
  }

  // REQUIRES: at the u of \uXXXX.
  Status read_unicode_escape(std::string& out, const Place* place) {
    const std::size_t start = position_ - 1;
    const std::optional<std::uint32_t> unit = read_code_unit();
    if (!unit) return problem(place, start, "\\u without four hexadecimal digits");
    if (*unit < 0xD800 || *unit > 0xDFFF) {
      append_utf8(*unit, out);
      return {};
    }
    std::optional<std::uint32_t> low;
    if (*unit < 0xDC00 && text_.substr(position_, 2) == "\\u") {
      ++position_;
      low = read_code_unit();
    }
    if (!low || *low < 0xDC00 || *low > 0xDFFF) {
      return problem(place, start,
                     fmt::format("half of a surrogate pair, {},", text_.substr(start, 6)));
    }
    append_utf8(0x10000U + ((*unit - 0xD800U) << 10U) + (*low - 0xDC00U), out);
    return {};
  }

  std::string_view text_;
  std::string_view what_;
  const JsonLimits& limits_;
  std::size_t position_ = 0;
  std::size_t value_count_ = 0;
  bool is_skipping_ = false;
};

}  // namespace

Result<JsonValue> read_json(std::string_view text, std::string_view what,
                            const JsonLimits& limits) {
  return Reader(text, what, limits).read_document();
}

}  // namespace locket::chat
