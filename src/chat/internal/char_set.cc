#include "chat/internal/char_set.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "chat/utf8.h"

namespace locket::chat {
namespace {

constexpr std::uint32_t kLastCharacter = 0x10FFFF;
constexpr CharRange kSurrogates = {0xD800, 0xDFFF};
constexpr std::uint32_t kControlTokenBar = 0xFF5C;
// The last characters of 1, 2, 3 and 4 bytes.
constexpr std::array<std::uint32_t, 4> kLastOfLength = {0x7F, 0x7FF, 0xFFFF, kLastCharacter};

struct ByteRange {
  unsigned char first = 0;
  unsigned char last = 0;
};

void add_sequence(AutomatonBuilder& builder, StateId from, std::span<const ByteRange> bytes,
                  StateId to) {
  for (std::size_t index = 0; index < bytes.size(); ++index) {
    const StateId next = index + 1 == bytes.size() ? to : builder.add_state();
    builder.add_edge(from, bytes[index].first, bytes[index].last, next);
    from = next;
  }
}

std::uint32_t low_bits(std::size_t continuation_bytes) {
  return (std::uint32_t{1} << (6 * continuation_bytes)) - 1;
}

// REQUIRES: both ends have the same encoded length.
void add_same_length(AutomatonBuilder& builder, StateId from, CharRange range, StateId to) {
  std::string first;
  std::string last;
  append_utf8(range.first, first);
  append_utf8(range.last, last);
  // Cut until all bytes behind the first that differs may take every value.
  for (std::size_t tail = 1; tail < first.size(); ++tail) {
    const std::uint32_t mask = low_bits(tail);
    if ((range.first & ~mask) == (range.last & ~mask)) continue;
    if ((range.first & mask) != 0) {
      add_same_length(builder, from, {range.first, range.first | mask}, to);
      return add_same_length(builder, from, {(range.first | mask) + 1, range.last}, to);
    }
    if ((range.last & mask) != mask) {
      add_same_length(builder, from, {range.first, (range.last & ~mask) - 1}, to);
      return add_same_length(builder, from, {range.last & ~mask, range.last}, to);
    }
  }
  std::array<ByteRange, 4> bytes;
  for (std::size_t index = 0; index < first.size(); ++index) {
    bytes[index] = {static_cast<unsigned char>(first[index]),
                    static_cast<unsigned char>(last[index])};
  }
  add_sequence(builder, from, std::span(bytes).first(first.size()), to);
}

void add_utf8(AutomatonBuilder& builder, StateId from, const CharSet& set, StateId to) {
  for (CharRange range : set.ranges()) {
    for (const std::uint32_t end : kLastOfLength) {
      if (range.first > end || range.first > range.last) continue;
      add_same_length(builder, from, {range.first, std::min(range.last, end)}, to);
      range.first = end + 1;
    }
  }
}

// The spelling of a character that JSON does not let stand in a string.
std::string json_escape(std::uint32_t character) {
  constexpr std::string_view kShort = "\b\t\n\f\r\"\\";
  constexpr std::string_view kLetters = "btnfr\"\\";
  constexpr std::string_view kHex = "0123456789abcdef";
  const std::size_t at = kShort.find(static_cast<char>(character));
  if (at != std::string_view::npos) return {'\\', kLetters[at]};
  std::string text = "\\u00";
  text.push_back(kHex[character >> 4]);
  text.push_back(kHex[character & 15]);
  return text;
}

CharSet json_escaped() { return {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}}; }

CharSet raw_excluded() {
  return {{0, 8}, {11, 12}, {14, 0x1F}, {0x7F, 0x7F}, {kControlTokenBar, kControlTokenBar}};
}

StateId add_hex(AutomatonBuilder& builder, StateId from, std::size_t digits, StateId to) {
  for (std::size_t index = 0; index < digits; ++index) {
    const StateId next = index + 1 == digits ? to : builder.add_state();
    builder.add_edge(from, '0', '9', next);
    builder.add_edge(from, 'A', 'F', next);
    builder.add_edge(from, 'a', 'f', next);
    from = next;
  }
  return from;
}

}  // namespace

CharSet::CharSet(std::initializer_list<CharRange> ranges) : ranges_(ranges) { tidy(); }

CharSet CharSet::all() {
  return {{0, kSurrogates.first - 1}, {kSurrogates.last + 1, kLastCharacter}};
}

void CharSet::add(CharRange range) {
  ranges_.push_back(range);
  tidy();
}

void CharSet::add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  tidy();
}

void CharSet::tidy() {
  std::sort(ranges_.begin(), ranges_.end());
  std::vector<CharRange> merged;
  for (const CharRange& range : ranges_) {
    if (!merged.empty() && range.first <= merged.back().last + 1) {
      merged.back().last = std::max(merged.back().last, range.last);
    } else {
      merged.push_back(range);
    }
  }
  ranges_ = std::move(merged);
}

CharSet CharSet::without(const CharSet& other) const {
  CharSet out;
  for (CharRange range : ranges_) {
    for (const CharRange& hole : other.ranges_) {
      if (hole.last < range.first || range.first > range.last) continue;
      if (hole.first > range.last) break;
      if (hole.first > range.first) out.ranges_.push_back({range.first, hole.first - 1});
      range.first = hole.last + 1;
    }
    if (range.first <= range.last) out.ranges_.push_back(range);
  }
  out.tidy();
  return out;
}

void add_characters(AutomatonBuilder& builder, StateId from, const CharSet& set, TextForm form,
                    StateId to) {
  const CharSet clean = set.without({kSurrogates});
  if (form == TextForm::kRaw) return add_utf8(builder, from, clean.without(raw_excluded()), to);
  const CharSet plain = clean.without(json_escaped());
  add_utf8(builder, from, plain, to);
  const CharSet escaped = clean.without(plain);
  for (const CharRange& range : escaped.ranges()) {
    for (std::uint32_t at = range.first; at <= range.last; ++at) {
      builder.add_text_to(from, json_escape(at), to);
    }
  }
}

void add_any_json_character(AutomatonBuilder& builder, StateId from, StateId to) {
  add_utf8(builder, from, CharSet::all().without(json_escaped()), to);
  const StateId escape = builder.add_state();
  builder.add_byte(from, '\\', escape);
  for (const char letter : std::string_view("\"\\/bfnrt")) builder.add_byte(escape, letter, to);
  const StateId hex = builder.add_state();
  builder.add_byte(escape, 'u', hex);
  const StateId three = builder.add_state();
  builder.add_edge(hex, '0', '9', three);
  for (const char letter : std::string_view("ABCEFabcef")) builder.add_byte(hex, letter, three);
  add_hex(builder, three, 3, to);
  const StateId above = builder.add_state();
  builder.add_byte(hex, 'D', above);
  builder.add_byte(hex, 'd', above);
  const StateId two = builder.add_state();
  builder.add_edge(above, '0', '7', two);
  add_hex(builder, two, 2, to);
  // The first half of a pair, which its second half must follow.
  const StateId half = builder.add_state();
  builder.add_edge(above, '8', '9', half);
  for (const char letter : std::string_view("ABab")) builder.add_byte(above, letter, half);
  const StateId pair = builder.add_state();
  add_hex(builder, half, 2, pair);
  const StateId behind = builder.add_text(pair, "\\u");
  const StateId second = builder.add_state();
  builder.add_byte(behind, 'D', second);
  builder.add_byte(behind, 'd', second);
  const StateId last = builder.add_state();
  for (const char letter : std::string_view("CDEFcdef")) builder.add_byte(second, letter, last);
  add_hex(builder, last, 2, to);
}

bool is_plain_ascii(const CharSet& set) {
  return std::all_of(set.ranges().begin(), set.ranges().end(), [](const CharRange& range) {
    const auto holds = [&range](std::uint32_t at) { return range.first <= at && at <= range.last; };
    return range.first >= 0x20 && range.last < 0x7F && !holds('"') && !holds('\\');
  });
}

}  // namespace locket::chat
