#include "cli/json_lines.h"

#include <array>
#include <string_view>
#include <utility>

namespace locket::cli {

std::string escape_line_ends(std::string json) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kLineEnds = {
      {{"\xC2\x85", "\\u0085"}, {"\xE2\x80\xA8", "\\u2028"}, {"\xE2\x80\xA9", "\\u2029"}}};
  for (const auto& [character, escape] : kLineEnds) {
    for (std::size_t at = json.find(character); at != std::string::npos;
         at = json.find(character, at + escape.size())) {
      json.replace(at, character.size(), escape);
    }
  }
  return json;
}

}  // namespace locket::cli
