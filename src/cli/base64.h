// Base64 (RFC 4648, standard alphabet, with padding), for bytes inside JSON. Pure functions.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace locket::cli {

std::string encode_base64(std::string_view bytes);

// kBadRequest names the first place that is wrong; nothing is skipped or guessed.
[[nodiscard]] Result<std::string> decode_base64(std::string_view text);

}  // namespace locket::cli
