// What may follow inside a UTF-8 character, as a small automaton. Pure function.
#pragma once

#include <optional>

namespace locket::chat {

enum class Utf8Place {
  kBetween,
  kOneMore,
  kTwoMore,
  kThreeMore,
  kAfterE0,  // no overlong forms
  kAfterEd,  // no surrogates
  kAfterF0,
  kAfterF4,  // nothing above U+10FFFF
  kCount
};

// Where `byte` leads; nothing where it makes the text invalid.
std::optional<Utf8Place> utf8_step(Utf8Place place, unsigned char byte);

}  // namespace locket::chat
