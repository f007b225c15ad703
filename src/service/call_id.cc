#include "service/call_id.h"

#include <array>
#include <fmt/format.h>
#include <string_view>

#include "base/hash.h"

namespace locket::service {
namespace {

constexpr std::size_t kRandomLetters = 24;
constexpr std::string_view kLetters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

}  // namespace

std::string random_letters(std::size_t count) {
  // Bytes above the last whole multiple would make the first letters more likely.
  constexpr std::size_t kUsable = 256 - 256 % kLetters.size();
  std::string text;
  while (text.size() < count) {
    std::array<std::byte, 32> drawn = {};
    random_bytes(drawn);
    for (const std::byte byte : drawn) {
      const auto number = std::to_integer<std::size_t>(byte);
      if (number < kUsable && text.size() < count)
        text.push_back(kLetters[number % kLetters.size()]);
    }
  }
  return text;
}

std::string make_call_id(std::size_t index) {
  return fmt::format("call_{:02}_{}", index, random_letters(kRandomLetters));
}

}  // namespace locket::service
