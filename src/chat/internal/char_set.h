// Sets of Unicode characters, and the parts of an automaton that take one character of a set, in
// the two forms in which text is written: inside a JSON string, and raw between tags. Surrogates
// are in no set. Plain data, pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <tuple>
#include <vector>

#include "chat/internal/byte_automaton.h"

namespace locket::chat {

struct CharRange {
  std::uint32_t first = 0;
  std::uint32_t last = 0;

  friend bool operator==(const CharRange&, const CharRange&) = default;
  friend bool operator<(const CharRange& one, const CharRange& other) {
    return std::tie(one.first, one.last) < std::tie(other.first, other.last);
  }
};

class CharSet {
 public:
  CharSet() = default;
  CharSet(std::initializer_list<CharRange> ranges);
  static CharSet all();

  void add(CharRange range);
  void add(const CharSet& other);
  CharSet without(const CharSet& other) const;
  bool is_empty() const { return ranges_.empty(); }
  // In order, apart from each other.
  std::span<const CharRange> ranges() const { return ranges_; }

  friend bool operator==(const CharSet&, const CharSet&) = default;
  friend bool operator<(const CharSet& one, const CharSet& other) {
    return one.ranges_ < other.ranges_;
  }

 private:
  void tidy();

  std::vector<CharRange> ranges_;
};

// How text is written.
enum class TextForm {
  kJson,  // between the quotes of a JSON string: quotes, backslashes and controls escaped
  kRaw,   // as it is; the bar of control tokens and control characters but \t \n \r are left out
  kCount
};

// One character of `set` leads from `from` to `to`. In kJson every character has one spelling.
void add_characters(AutomatonBuilder& builder, StateId from, const CharSet& set, TextForm form,
                    StateId to);

// All spellings of one character of a JSON string, \u0041 and paired surrogates among them.
void add_any_json_character(AutomatonBuilder& builder, StateId from, StateId to);

// Whether every character of the set is one byte in both forms.
bool is_plain_ascii(const CharSet& set);

}  // namespace locket::chat
