// Broken copies of a text, the same in every run: cut off, with flipped bits, with bytes and pieces
// put in or taken out. For parsers that must answer every text with a value or an error.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <string_view>

namespace locket::fuzz {

class BrokenText {
 public:
  BrokenText(std::string text, std::uint32_t seed) : text_(std::move(text)), random_(seed) {}

  // Without its end; every length is as likely.
  std::string cut() { return text_.substr(0, below(text_.size())); }

  // With 1 to 4 flipped bits.
  std::string flipped() {
    std::string text = text_;
    for (std::size_t flips = 1 + below(4); flips > 0; --flips) {
      const std::size_t at = below(text.size());
      text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << below(8)));
    }
    return text;
  }

  // With 1 to 3 places changed: bytes taken out, doubled, or replaced by something that means
  // something to a parser.
  std::string edited() {
    static constexpr std::string_view kPieces[] = {"\"",
                                                   "{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   ",",
                                                   ":",
                                                   "0",
                                                   "-1",
                                                   "1e999",
                                                   "18446744073709551616",
                                                   "-",
                                                   ".",
                                                   "e",
                                                   "null",
                                                   "\\",
                                                   "\n",
                                                   "9223372036854775807",
                                                   "true",
                                                   "\xFF",
                                                   "\\ud83d",
                                                   "\"\":"};
    std::string text = text_;
    for (std::size_t edits = 1 + below(3); edits > 0; --edits) {
      const std::size_t at = below(text.size());
      const std::size_t length = std::min(1 + below(8), text.size() - at);
      switch (below(3)) {
        case 0:
          text.erase(at, length);
          break;
        case 1:
          text.insert(at, text.substr(at, length));
          break;
        default:
          text.replace(at, length, kPieces[below(std::size(kPieces))]);
          break;
      }
      if (text.empty()) break;
    }
    return text;
  }

  // With one number replaced by another one, mostly a strange one.
  std::string renumbered() {
    static constexpr std::string_view kNumbers[] = {"0",
                                                    "1",
                                                    "2",
                                                    "3",
                                                    "-1",
                                                    "7",
                                                    "127",
                                                    "128",
                                                    "1.5",
                                                    "1e300",
                                                    "65536",
                                                    "2147483647",
                                                    "2147483648",
                                                    "4294967296",
                                                    "9223372036854775807",
                                                    "9223372036854775808",
                                                    "18446744073709551616"};
    std::string text = text_;
    std::size_t at = text.find_first_of("0123456789", below(text.size()));
    if (at == std::string::npos) at = text.find_first_of("0123456789");
    if (at == std::string::npos) return text;
    const std::size_t end = std::min(text.find_first_not_of("0123456789", at), text.size());
    return text.replace(at, end - at, kNumbers[below(std::size(kNumbers))]);
  }

 private:
  std::size_t below(std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_);
  }

  std::string text_;
  std::mt19937 random_;
};

}  // namespace locket::fuzz
