// Rules for strings with a length or a pattern, inside a JSON string or raw between tags, and for
// fixed texts. Rules that are asked for twice are made once.
//
// Not thread-safe. Builder and JSON rules must outlive this.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "chat/internal/char_set.h"
#include "chat/internal/json_rules.h"
#include "chat/internal/regex.h"

namespace locket::chat {

// In characters.
struct TextLength {
  std::size_t min = 0;
  std::optional<std::size_t> max;

  friend bool operator<(const TextLength& one, const TextLength& other) {
    return std::tie(one.min, one.max) < std::tie(other.min, other.max);
  }
};

class TextRules {
 public:
  TextRules(AutomatonBuilder& builder, JsonRules& json) : builder_(builder), json_(json) {}

  // kJson: with its quotes.
  RuleId of_length(const TextLength& length, TextForm form);

  // Characters in one of their spellings. kBadRequest: pattern and length together are too large.
  [[nodiscard]] Result<RuleId> of_pattern(const CharAutomaton& pattern, const TextLength& length,
                                          TextForm form);

  // One of the texts, as they are.
  RuleId of_texts(std::vector<std::string> texts);

 private:
  struct Product;

  RuleId set_rule(const CharSet& set, TextForm form);
  void add_set(StateId from, const CharSet& set, TextForm form, StateId to);

  AutomatonBuilder& builder_;
  JsonRules& json_;
  std::map<std::pair<TextLength, TextForm>, RuleId> lengths_;
  std::map<std::pair<CharSet, TextForm>, RuleId> sets_;
};

// The pattern of a format ("email", "uuid", ...); nothing if it is not known.
std::optional<std::string_view> format_pattern(std::string_view format);
// The names that format_pattern() knows, for messages.
std::string format_names();

}  // namespace locket::chat
