#include "server/internal/head_scanner.h"

namespace locket::server {
namespace {

constexpr std::size_t kMaxMethodBytes = 32;

bool is_token_letter(char letter) {
  const bool is_alphanumeric = (letter >= 'a' && letter <= 'z') ||
                               (letter >= 'A' && letter <= 'Z') || (letter >= '0' && letter <= '9');
  return is_alphanumeric ||
         std::string_view("!#$%&'*+-.^_`|~").find(letter) != std::string_view::npos;
}

}  // namespace

// A line ends with CR LF; neither stands alone, and no other control character than a tab occurs.
bool HeadScanner::takes(char letter) {
  if (is_after_return_ || letter == '\n') return is_after_return_ && letter == '\n';
  if (is_in_method_) {
    if (letter == ' ') return line_bytes_ > 0;
    return is_token_letter(letter) && line_bytes_ < kMaxMethodBytes;
  }
  const auto code = static_cast<unsigned char>(letter);
  return letter == '\r' || letter == '\t' || (code >= 0x20 && code != 0x7f);
}

HeadScanner::State HeadScanner::scan(std::string_view bytes) {
  while (scanned_ < bytes.size()) {
    const char letter = bytes[scanned_];
    if (!takes(letter)) return State::kNotHttp;
    scanned_ += 1;
    if (letter == ' ') is_in_method_ = false;
    const bool is_line_end = letter == '\n';
    is_after_return_ = letter == '\r';
    if (is_line_end && line_bytes_ == 0) return State::kComplete;
    if (is_line_end) {
      line_bytes_ = 0;
    } else if (!is_after_return_) {
      line_bytes_ += 1;
    }
  }
  return State::kMore;
}

}  // namespace locket::server
