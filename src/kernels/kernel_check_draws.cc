#include <array>
#include <bit>

#include "kernels/kernel_check_cases.h"

namespace locket::kernels {

CheckDraws::CheckDraws(std::uint32_t number) : engine_(number) {
  range_ = static_cast<Range>(below(static_cast<std::size_t>(Range::kCount)));
}

float CheckDraws::value() {
  const auto sign = static_cast<std::uint32_t>(below(2) << 31);
  if (below(8) == 0) return std::bit_cast<float>(sign);
  const auto mantissa = static_cast<std::uint32_t>(below(std::size_t{1} << 23));
  return std::bit_cast<float>(sign | exponent() << 23 | mantissa);
}

std::vector<float> CheckDraws::values(std::size_t count) {
  std::vector<float> list(count);
  for (float& item : list) item = value();
  return list;
}

std::vector<float> CheckDraws::bf16_values(std::size_t count) {
  std::vector<float> list = values(count);
  for (float& item : list) {
    item = std::bit_cast<float>(std::bit_cast<std::uint32_t>(item) & 0xFFFF0000u);
  }
  return list;
}

std::vector<float> CheckDraws::values(std::size_t count, Rounding rounding) {
  return rounding == Rounding::kBf16 ? bf16_values(count) : values(count);
}

std::vector<float> CheckDraws::usual_values(std::size_t count) {
  const Range range = std::exchange(range_, Range::kUsual);
  std::vector<float> list = values(count);
  range_ = range;
  return list;
}

std::byte CheckDraws::scale_code() {
  constexpr std::array<std::size_t, 4> kFirst = {110, 0, 170, 0};
  constexpr std::array<std::size_t, 4> kCodes = {8, 80, 20, 128};
  const auto range = static_cast<std::size_t>(range_);
  return static_cast<std::byte>(kFirst[range] + below(kCodes[range]));
}

std::uint32_t CheckDraws::exponent() {
  const auto from = [this](std::size_t first, std::size_t count) {
    return static_cast<std::uint32_t>(first + below(count));
  };
  switch (range_) {
    case Range::kUsual:
      return from(120, 10);
    case Range::kTiny:
      return from(45, 36);
    case Range::kHuge:
      return below(64) == 0 ? 254 : from(170, 20);
    case Range::kDenormal:
      return below(4) == 0 ? 127 : from(0, 3);
    case Range::kCount:
      break;
  }
  return 0;
}

std::string check_shape(std::initializer_list<std::pair<const char*, std::size_t>> facts) {
  std::string text;
  for (const auto& [name, value] : facts) {
    if (!text.empty()) text += ", ";
    text += std::to_string(value) + " " + name;
  }
  return text;
}

void append_exactly(std::uint64_t value, std::vector<float>& list) {
  constexpr unsigned kBits = 16;  // whole numbers that a float holds
  for (unsigned shift = 0; shift < 64; shift += kBits) {
    list.push_back(static_cast<float>((value >> shift) & 0xFFFFu));
  }
}

}  // namespace locket::kernels
