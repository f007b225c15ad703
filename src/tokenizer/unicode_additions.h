// Characters that Unicode 15.0, 15.1 and 16.0 assigned, by general category. The reference
// tokenizer library classifies by Unicode 16.0, the PCRE2 of Debian 12 by 14.0; no character
// that 14.0 has changed its category since. So a class of 16.0 is the class of 14.0 and these
// ranges.
#pragma once

#include <span>

namespace locket::tokenizer {

struct UnicodeAddition {
  char category;  // first letter of the general category: L, M, N, P or S
  char32_t first;
  char32_t last;
};

std::span<const UnicodeAddition> unicode_additions();

}  // namespace locket::tokenizer
