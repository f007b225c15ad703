// Text that is free but for the marks that end it: reasoning, an answer before a call, the value of
// a string parameter. Text is valid UTF-8 without NUL. Pure functions on their builder.
//
// A mark is spelled with a control token. Plain bytes that spell it never pass where the reader of
// the output would take them for the mark, unless the mark says so.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "chat/internal/byte_automaton.h"

namespace locket::chat {

struct TextMark {
  std::string_view spelling;    // its first byte is '<', which stands nowhere else in it
  std::size_t lead_bytes = 0;   // plain bytes of the spelling before the control token
  Symbol symbol = kDsmlSymbol;  // the control token
  std::optional<StateId> exit;  // behind the mark; none: the mark must not come
  bool may_be_plain = false;    // the spelling in plain bytes leads to `exit` as well
};

enum class TextEnd { kNotHere, kAnywhere, kCount };
enum class OtherControls { kRefuse, kAllow, kCount };

struct FreeText {
  std::span<const TextMark> marks;
  TextEnd end = TextEnd::kNotHere;  // kAnywhere: its states are accepting
  OtherControls controls = OtherControls::kRefuse;
};

// The state in which the text begins.
StateId add_free_text(AutomatonBuilder& builder, const FreeText& text);

// One JSON string without escapes that is none of `names`.
RuleId add_other_name(AutomatonBuilder& builder, std::span<const std::string_view> names);

}  // namespace locket::chat
