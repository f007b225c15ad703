#include "chat/internal/regex_tree.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>

#include "chat/internal/regex.h"
#include "chat/utf8.h"

namespace locket::chat {
namespace {

constexpr std::size_t kMaxRepeat = 4096;

CharSet digits() { return {{'0', '9'}}; }
CharSet word_characters() { return {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}; }
CharSet spaces() { return {{'\t', '\r'}, {' ', ' '}}; }
CharSet line_ends() { return {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}; }
// What some engine takes for a space, so that the opposite is none of them for all.
CharSet all_spaces() {
  return {{'\t', '\r'},     {0x1C, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
          {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
          {0x205F, 0x205F}, {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
}

std::uint32_t code_point(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (bytes.size() == 1) return first;
  std::uint32_t value = first & (0xFFU >> (bytes.size() + 1));
  for (const char byte : bytes.substr(1)) {
    value = (value << 6) | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return value;
}

class RegexReader {
 public:
  explicit RegexReader(std::string_view pattern) : rest_(pattern) {}

  Result<std::vector<RegexBranch>> read() {
    std::vector<RegexBranch> branches;
    while (true) {
      RegexBranch branch;
      branch.begins_text = take('^');
      LOCKET_TRY(branch.node, read_sequence());
      branch.ends_text = take('$');
      branches.push_back(std::move(branch));
      if (rest_.empty()) return branches;
      if (take('|')) continue;
      if (rest_.starts_with(')')) return wrong("a ) without a (");
      return wrong("a ^ or $ in the middle; they may only stand at the ends");
    }
  }

 private:
  static tl::unexpected<Error> wrong(std::string text) {
    return fail(ErrorCode::kBadRequest, fmt::format("has {}", text));
  }

  bool take(char byte) {
    if (!rest_.starts_with(byte)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Up to what ends a sequence.
  Result<RegexNode> read_sequence() {
    RegexNode sequence;
    while (!rest_.empty() && std::string_view("|)$^").find(rest_[0]) == std::string_view::npos) {
      LOCKET_TRY(RegexNode atom, read_atom());
      LOCKET_TRY(RegexNode repeated, read_repeats(std::move(atom)));
      sequence.parts.push_back(std::move(repeated));
    }
    return sequence;
  }

  Result<RegexNode> read_group() {
    if (++depth_ > kMaxPatternDepth) {
      return wrong(fmt::format("more than {} groups in each other", kMaxPatternDepth));
    }
    if (take('?')) LOCKET_TRY_STATUS(read_group_kind());
    RegexNode choice;
    choice.kind = RegexNode::Kind::kChoice;
    do {
      LOCKET_TRY(RegexNode part, read_sequence());
      choice.parts.push_back(std::move(part));
    } while (take('|'));
    if (!rest_.empty() && rest_[0] != ')') {
      return wrong("a ^ or $ inside a group; they may only stand at the ends");
    }
    if (!take(')')) return wrong("a ( without its )");
    --depth_;
    return choice;
  }

  Status read_group_kind() {
    if (take(':')) return {};
    const bool is_named =
        rest_.starts_with("<") && !rest_.starts_with("<=") && !rest_.starts_with("<!");
    const std::size_t end = rest_.find('>');
    if (!is_named || end == std::string_view::npos) {
      return wrong("a (? that is neither (?: nor a name; lookaround is not supported");
    }
    rest_.remove_prefix(end + 1);
    return {};
  }

  Result<RegexNode> read_atom() {
    if (take('(')) return read_group();
    RegexNode node;
    node.kind = RegexNode::Kind::kSet;
    if (take('.')) {
      node.set = CharSet::all().without(line_ends());
    } else if (take('[')) {
      LOCKET_TRY(node.set, read_class());
    } else if (take('\\')) {
      LOCKET_TRY(node.set, read_escape());
    } else if (std::string_view("*+?{").find(rest_[0]) != std::string_view::npos) {
      return wrong(fmt::format("a {} with nothing before it", rest_[0]));
    } else {
      const std::uint32_t character = read_character();
      node.set.add({character, character});
    }
    return node;
  }

  // REQUIRES: not at the end. The pattern is valid UTF-8.
  std::uint32_t read_character() {
    const std::size_t bytes = std::max<std::size_t>(1, utf8_character_bytes(rest_));
    const std::uint32_t character = code_point(rest_.substr(0, bytes));
    rest_.remove_prefix(bytes);
    return character;
  }

  Result<CharSet> read_escape() {
    if (rest_.empty()) return wrong("a \\ at the end");
    const std::uint32_t letter = read_character();
    switch (letter) {
      case 'd':
        return digits();
      case 'D':
        return CharSet::all().without(digits());
      case 'w':
        return word_characters();
      case 'W':
        return CharSet::all().without(word_characters());
      case 's':
        return spaces();
      case 'S':
        return CharSet::all().without(all_spaces());
      default:
        break;
    }
    LOCKET_TRY(const std::uint32_t character, escaped_character(letter));
    return CharSet{{character, character}};
  }

  Result<std::uint32_t> escaped_character(std::uint32_t letter) {
    constexpr std::string_view kNames = "tnrfv";
    constexpr std::string_view kControls = "\t\n\r\f\v";
    if (letter == 'u' || letter == 'x') return read_hex(letter == 'u' ? 4 : 2);
    if (letter < 0x80) {
      const std::size_t name = kNames.find(static_cast<char>(letter));
      if (name != std::string_view::npos) return static_cast<std::uint32_t>(kControls[name]);
    }
    const bool is_letter = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                           (letter >= '0' && letter <= '9');
    if (is_letter) {
      return wrong(fmt::format("\\{}, which is not supported", static_cast<char>(letter)));
    }
    return letter;
  }

  Result<std::uint32_t> read_hex(std::size_t count) {
    std::uint32_t value = 0;
    for (std::size_t index = 0; index < count; ++index) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      const char byte = rest_.empty() ? ' ' : rest_[0];
      const char lower = byte >= 'A' && byte <= 'F' ? static_cast<char>(byte + 32) : byte;
      const std::size_t digit = kDigits.find(lower);
      if (digit == std::string_view::npos) {
        return wrong(fmt::format("an escape with fewer than {} hex digits", count));
      }
      value = value * 16 + static_cast<std::uint32_t>(digit);
      rest_.remove_prefix(1);
    }
    return value;
  }

  Result<CharSet> read_class() {
    const bool is_negated = take('^');
    CharSet set;
    while (!take(']')) {
      if (rest_.empty()) return wrong("a [ without its ]");
      LOCKET_TRY_STATUS(read_class_part(set));
    }
    return is_negated ? CharSet::all().without(set) : set;
  }

  // One character, one escape, or a range.
  Status read_class_part(CharSet& set) {
    LOCKET_TRY(const CharSet first, read_class_atom());
    const bool is_range = rest_.size() >= 2 && rest_[0] == '-' && rest_[1] != ']';
    if (!is_range) {
      set.add(first);
      return {};
    }
    rest_.remove_prefix(1);
    LOCKET_TRY(const CharSet last, read_class_atom());
    const auto one = [](const CharSet& part) {
      return part.ranges().size() == 1 && part.ranges()[0].first == part.ranges()[0].last;
    };
    if (!one(first) || !one(last) || last.ranges()[0].first < first.ranges()[0].first) {
      return wrong("a range in [] whose ends are not two characters in order");
    }
    set.add({first.ranges()[0].first, last.ranges()[0].first});
    return {};
  }

  Result<CharSet> read_class_atom() {
    if (take('\\')) {
      if (take('b')) return CharSet{{'\b', '\b'}};
      return read_escape();
    }
    const std::uint32_t character = read_character();
    return CharSet{{character, character}};
  }

  Result<RegexNode> read_repeats(RegexNode atom) {
    RegexNode repeat;
    repeat.kind = RegexNode::Kind::kRepeat;
    if (take('+')) {
      repeat.min = 1;
    } else if (take('?')) {
      repeat.max = 1;
    } else if (rest_.starts_with('{')) {
      LOCKET_TRY_STATUS(read_counts(repeat));
    } else if (!take('*')) {
      return atom;
    }
    // Whether a repeat is lazy makes no difference to what fits.
    take('?');
    if (!rest_.empty() && std::string_view("*+?{").find(rest_[0]) != std::string_view::npos) {
      return wrong("two repeats in a row");
    }
    repeat.parts.push_back(std::move(atom));
    return repeat;
  }

  Status read_counts(RegexNode& repeat) {
    take('{');
    const std::optional<std::size_t> min = read_count();
    std::optional<std::size_t> max = min;
    if (take(',')) max = rest_.starts_with('}') ? kWithoutEnd : read_count();
    const bool is_whole = min && max && take('}');
    if (!is_whole || *min > *max) return wrong("a { that is no {n}, {n,} or {n,m} in order");
    if (*min > kMaxRepeat || (*max != kWithoutEnd && *max > kMaxRepeat)) {
      return wrong(fmt::format("a repeat of more than {}", kMaxRepeat));
    }
    repeat.min = *min;
    repeat.max = *max;
    return {};
  }

  std::optional<std::size_t> read_count() {
    std::size_t count = 0;
    std::size_t length = 0;
    for (; length < rest_.size() && rest_[length] >= '0' && rest_[length] <= '9'; ++length) {
      count = std::min<std::size_t>(count * 10 + static_cast<std::size_t>(rest_[length] - '0'),
                                    kMaxRepeat + 1);
    }
    rest_.remove_prefix(length);
    return length == 0 ? std::nullopt : std::optional(count);
  }

  std::string_view rest_;
  std::size_t depth_ = 0;
};

}  // namespace

Result<std::vector<RegexBranch>> parse_regex(std::string_view pattern) {
  return RegexReader(pattern).read();
}

}  // namespace locket::chat
