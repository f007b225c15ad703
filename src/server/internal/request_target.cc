#include "server/internal/request_target.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace locket::server {
namespace {

int hex_value(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

bool decode_percents(std::string_view text, std::string& out) {
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      out += text[at];
      continue;
    }
    if (at + 2 >= text.size()) return false;
    const int high = hex_value(text[at + 1]);
    const int low = hex_value(text[at + 2]);
    if (high < 0 || low < 0) return false;
    out += static_cast<char>(high * 16 + low);
    at += 2;
  }
  return true;
}

bool is_control(char letter) {
  const auto code = static_cast<unsigned char>(letter);
  return code < 0x20 || code == 0x7f;
}

// What follows "http://host" in the form that proxies send; unchanged in any other form.
std::string_view without_origin(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    const std::size_t end = target.find_first_of("/?", scheme.size());
    return end == std::string_view::npos ? "/" : target.substr(end);
  }
  return target;
}

}  // namespace

bool split_target(std::string_view target, RequestTarget& out) {
  target = without_origin(target);
  const std::size_t mark = std::min(target.find('?'), target.size());
  const std::string_view path = target.substr(0, mark);
  const std::string_view query = target.substr(std::min(mark + 1, target.size()));
  out = {};
  if (!path.starts_with('/') || !decode_percents(path, out.path)) return false;
  if (std::ranges::any_of(out.path, is_control)) return false;
  out.query = query;
  return tokenizer::is_valid_utf8(out.path) && tokenizer::is_valid_utf8(query);
}

}  // namespace locket::server
