// Numbers and texts to bytes and back: little-endian whatever the machine, lengths before contents.
// A reader that meets too few bytes gives zeros and says so at the end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/hash.h"

namespace locket::cache {

class ByteWriter {
 public:
  template <class Number>
  void number(Number value) {
    static_assert(std::is_integral_v<Number>);
    for (std::size_t i = 0; i < sizeof(Number); ++i) {
      bytes_.push_back(static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 255));
    }
  }
  void raw(std::span<const std::byte> bytes) {
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  void checksum(const Checksum128& value) {
    number(value.low);
    number(value.high);
  }
  void text(std::string_view text) {
    number(static_cast<std::uint32_t>(text.size()));
    bytes_.append(text);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : bytes_(bytes) {}

  template <class Number>
  Number number() {
    static_assert(std::is_integral_v<Number>);
    const std::string_view part = take(sizeof(Number));
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < part.size(); ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(part[i])} << (8 * i);
    }
    return static_cast<Number>(value);
  }
  void raw(std::span<std::byte> target) {
    const std::string_view part = take(target.size());
    std::memcpy(target.data(), part.data(), part.size());
  }
  Checksum128 checksum() {
    const auto low = number<std::uint64_t>();
    return {.low = low, .high = number<std::uint64_t>()};
  }
  std::string text() { return std::string(take(number<std::uint32_t>())); }

  std::size_t left() const { return bytes_.size(); }
  // Whether everything was there and nothing is left.
  bool is_complete() const { return !is_short_ && bytes_.empty(); }

 private:
  std::string_view take(std::size_t count) {
    if (count > bytes_.size()) {
      is_short_ = true;
      bytes_ = {};
      return {};
    }
    const std::string_view part = bytes_.substr(0, count);
    bytes_.remove_prefix(count);
    return part;
  }

  std::string_view bytes_;
  bool is_short_ = false;
};

}  // namespace locket::cache
