#include <array>
#include <string>
#include <string_view>

#include "chat/internal/text_rules.h"

namespace locket::chat {
namespace {

struct TextFormat {
  std::string_view name;
  std::string_view pattern;
};

// Patterns that hold only what every validator accepts: days that every year has, names of bounded
// length.
constexpr std::array<TextFormat, 8> kFormats = {{
    {"email",
     "^[A-Za-z0-9_+-]{1,30}(\\.[A-Za-z0-9_+-]{1,15}){0,2}"
     "@([A-Za-z0-9]([A-Za-z0-9-]{0,28}[A-Za-z0-9])?\\.){1,4}[A-Za-z]{2,20}$"},
    {"hostname",
     "^[A-Za-z0-9]([A-Za-z0-9-]{0,28}[A-Za-z0-9])?"
     "(\\.[A-Za-z0-9]([A-Za-z0-9-]{0,28}[A-Za-z0-9])?){0,7}$"},
    {"ipv4",
     "^((25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])\\.){3}"
     "(25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])$"},
    {"ipv6",
     "^([0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]{1,4}$|^([0-9A-Fa-f]{1,4}:){1,7}:$|"
     "^([0-9A-Fa-f]{1,4}:){1,6}:[0-9A-Fa-f]{1,4}$|"
     "^([0-9A-Fa-f]{1,4}:){1,5}(:[0-9A-Fa-f]{1,4}){1,2}$|"
     "^([0-9A-Fa-f]{1,4}:){1,4}(:[0-9A-Fa-f]{1,4}){1,3}$|"
     "^([0-9A-Fa-f]{1,4}:){1,3}(:[0-9A-Fa-f]{1,4}){1,4}$|"
     "^([0-9A-Fa-f]{1,4}:){1,2}(:[0-9A-Fa-f]{1,4}){1,5}$|"
     "^[0-9A-Fa-f]{1,4}:(:[0-9A-Fa-f]{1,4}){1,6}$|^:(:[0-9A-Fa-f]{1,4}){1,7}$|^::$"},
    {"uuid", "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"},
    {"date",
     "^[12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|"
     "(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))$"},
    {"time",
     "^([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?"
     "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"},
    {"date-time",
     "^[12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|"
     "(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))"
     "T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,6})?"
     "(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$"},
}};

}  // namespace

std::optional<std::string_view> format_pattern(std::string_view format) {
  for (const TextFormat& known : kFormats) {
    if (known.name == format) return known.pattern;
  }
  return std::nullopt;
}

std::string format_names() {
  std::string names;
  for (const TextFormat& known : kFormats) {
    if (!names.empty()) names += ", ";
    names += known.name;
  }
  return names;
}

}  // namespace locket::chat
