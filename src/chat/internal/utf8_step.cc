#include "chat/internal/utf8_step.h"

#include "base/check.h"

namespace locket::chat {
namespace {

bool is_within(unsigned char byte, unsigned char first, unsigned char last) {
  return byte >= first && byte <= last;
}

std::optional<Utf8Place> first_step(unsigned char byte) {
  if (byte < 0x80) return Utf8Place::kBetween;
  if (byte < 0xC2 || byte > 0xF4) return std::nullopt;
  if (byte < 0xE0) return Utf8Place::kOneMore;
  if (byte == 0xE0) return Utf8Place::kAfterE0;
  if (byte == 0xED) return Utf8Place::kAfterEd;
  if (byte < 0xF0) return Utf8Place::kTwoMore;
  if (byte == 0xF0) return Utf8Place::kAfterF0;
  return byte == 0xF4 ? Utf8Place::kAfterF4 : Utf8Place::kThreeMore;
}

}  // namespace

std::optional<Utf8Place> utf8_step(Utf8Place place, unsigned char byte) {
  const auto go_if = [](bool fits, Utf8Place next) {
    return fits ? std::optional(next) : std::nullopt;
  };
  switch (place) {
    case Utf8Place::kBetween:
      return first_step(byte);
    case Utf8Place::kOneMore:
      return go_if(is_within(byte, 0x80, 0xBF), Utf8Place::kBetween);
    case Utf8Place::kTwoMore:
      return go_if(is_within(byte, 0x80, 0xBF), Utf8Place::kOneMore);
    case Utf8Place::kThreeMore:
      return go_if(is_within(byte, 0x80, 0xBF), Utf8Place::kTwoMore);
    case Utf8Place::kAfterE0:
      return go_if(is_within(byte, 0xA0, 0xBF), Utf8Place::kOneMore);
    case Utf8Place::kAfterEd:
      return go_if(is_within(byte, 0x80, 0x9F), Utf8Place::kOneMore);
    case Utf8Place::kAfterF0:
      return go_if(is_within(byte, 0x90, 0xBF), Utf8Place::kTwoMore);
    case Utf8Place::kAfterF4:
      return go_if(is_within(byte, 0x80, 0x8F), Utf8Place::kTwoMore);
    case Utf8Place::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

}  // namespace locket::chat
