#include "cli/byte_size.h"

#include <charconv>
#include <cstdint>
#include <fmt/format.h>
#include <limits>
#include <string_view>

namespace locket::cli {

std::string read_size(std::string& text) {
  constexpr std::string_view kUnits = "KMGT";
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit =
      std::string_view(text).substr(static_cast<std::size_t>(end - text.data()));
  const bool is_unit = unit.empty() || (unit.size() == 1 && kUnits.find(unit) != unit.npos);
  const std::size_t shift = unit.empty() || !is_unit ? 0 : 10 * (kUnits.find(unit) + 1);
  const auto most = std::numeric_limits<std::uint64_t>::max() >> shift;
  if (error != std::errc{} || !is_unit || value > most) {
    return fmt::format("\"{}\" is no size: write bytes, or a whole number with K, M, G or T", text);
  }
  text = std::to_string(value << shift);
  return "";
}

}  // namespace locket::cli
