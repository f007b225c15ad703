#include "checkpoint/internal/error_text.h"

#include <algorithm>
#include <fmt/format.h>

namespace locket::checkpoint::internal {
namespace {

constexpr std::size_t kShownBytes = 160;
constexpr std::size_t kShownNames = 5;

bool is_utf8_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

}  // namespace

std::string printable(std::string_view text) {
  std::size_t end = std::min(text.size(), kShownBytes);
  while (end > 0 && end < text.size() && is_utf8_continuation(text[end])) --end;
  std::string shown(text.substr(0, end));
  std::ranges::replace_if(
      shown, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return end < text.size() ? shown + "..." : shown;
}

std::string join_names(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names.first(std::min(names.size(), kShownNames))) {
    if (!text.empty()) text += ", ";
    text += printable(name);
  }
  if (names.size() > kShownNames) text += fmt::format(" and {} more", names.size() - kShownNames);
  return text;
}

bool is_lfs_pointer(std::string_view content) {
  return content.starts_with("version https://git-lfs.github.com/spec/");
}

tl::unexpected<Error> refuse_lfs_pointer(std::string_view file_name) {
  return fail(ErrorCode::kBadCheckpoint,
              fmt::format("{} is a Git LFS pointer, not the file itself; fetch the content first "
                          "(git lfs pull)",
                          file_name));
}

tl::unexpected<Error> with_prefix(std::string_view prefix, const Error& error) {
  return fail(error.code, fmt::format("{}{}", prefix, error.message));
}

}  // namespace locket::checkpoint::internal
