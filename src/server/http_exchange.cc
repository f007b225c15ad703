#include "server/http_exchange.h"

#include <algorithm>

namespace locket::server {
namespace {

char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

bool is_same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [header_name, value] : headers) {
    if (is_same_name(header_name, name)) return value;
  }
  return {};
}

}  // namespace locket::server
