// JSON output of which every value is one line for every reader. Pure function, thread-safe.
#pragma once

#include <string>

namespace locket::cli {

// `json` with the line ends of Unicode that JSON allows in strings (U+0085, U+2028, U+2029) written
// as escapes, since some readers split lines there. REQUIRES: JSON on one line, in UTF-8.
std::string escape_line_ends(std::string json);

}  // namespace locket::cli
