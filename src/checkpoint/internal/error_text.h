// Words for error messages about names and files that come from outside.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace locket::checkpoint::internal {

// Short enough for a message, without control characters.
std::string printable(std::string_view text);

// "a, b, c, d, e and 7 more"
std::string join_names(std::span<const std::string> names);

// The text that git puts in place of a file that is stored in LFS.
bool is_lfs_pointer(std::string_view content);
[[nodiscard]] tl::unexpected<Error> refuse_lfs_pointer(std::string_view file_name);

// Puts `prefix` before the message of a failure, the code stays.
[[nodiscard]] tl::unexpected<Error> with_prefix(std::string_view prefix, const Error& error);

}  // namespace locket::checkpoint::internal
