// The patterns of tokenizer.json are written for Oniguruma; this says the same to PCRE2. Only
// syntax whose meaning is known to be equal, or is translated here, is let through. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace locket::tokenizer {

// `pattern` (valid UTF-8) for PCRE2 with UTF, UCP, MULTILINE and LF as the newline. \s and the
// classes \p{L} \p{M} \p{N} \p{P} \p{S} come out as Unicode 16.0 has them. kBadCheckpoint names the
// piece of syntax that is not known and its offset.
[[nodiscard]] Result<std::string> to_pcre2_pattern(std::string_view pattern);

}  // namespace locket::tokenizer
