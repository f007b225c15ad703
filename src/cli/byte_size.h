// Sizes as people write them.
#pragma once

#include <string>

namespace locket::cli {

// Turns bytes, or a whole number with a binary unit (512M, 4G), into bytes as text. Empty if that
// worked, else what is wrong with it, for the parser of options.
std::string read_size(std::string& text);

}  // namespace locket::cli
