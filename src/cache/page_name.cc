#include "cache/page_name.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/check.h"

namespace locket::cache {
namespace {

constexpr std::size_t kChecksumBytes = 2 * sizeof(std::uint64_t);

// Numbers are little-endian, whatever the machine.
template <class Number>
void append_number(std::vector<std::byte>& bytes, Number value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof(Number));
  for (std::size_t i = 0; i < sizeof(Number); ++i) {
    bytes[at + i] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i));
  }
}

// Tag, length, content.
void append_field(std::vector<std::byte>& bytes, char tag, std::span<const std::byte> content) {
  bytes.push_back(static_cast<std::byte>(tag));
  append_number(bytes, static_cast<std::uint64_t>(content.size()));
  bytes.insert(bytes.end(), content.begin(), content.end());
}

std::vector<std::byte> number_bytes(std::uint32_t value) {
  std::vector<std::byte> bytes;
  append_number(bytes, value);
  return bytes;
}

void append_tokens(std::vector<std::byte>& bytes, std::span<const std::int32_t> tokens) {
  append_number(bytes, static_cast<std::uint32_t>(tokens.size()));
  const std::size_t at = bytes.size();
  bytes.resize(at + tokens.size_bytes());
  std::byte* to = bytes.data() + at;
  for (const std::int32_t token : tokens) {
    const auto value = static_cast<std::uint32_t>(token);
    for (std::size_t i = 0; i < sizeof(value); ++i) {
      *to++ = static_cast<std::byte>(value >> (8 * i));
    }
  }
}

}  // namespace

PageName root_name(std::span<const std::byte> secret, const MemoryIdentity& identity) {
  std::vector<std::byte> bytes;
  append_field(bytes, 'f', number_bytes(kMemoryFormat));
  append_field(bytes, 'm', identity.model);
  append_field(bytes, 'n', std::as_bytes(std::span(identity.numerics_mode)));
  append_field(bytes, 'r', number_bytes(identity.numerics_revision));
  append_field(bytes, 't', std::as_bytes(std::span(identity.tenant)));
  return hmac_sha256(secret, bytes);
}

PageName page_name(const PageName& parent, std::span<const std::int32_t> tokens) {
  std::vector<std::byte> bytes;
  bytes.reserve(parent.size() + (tokens.size() + 1) * sizeof(std::int32_t));
  bytes.assign(parent.begin(), parent.end());
  append_tokens(bytes, tokens);
  return sha256(bytes);
}

PrefixPoint root_point(const PageName& root, std::int32_t name_bits) {
  LOCKET_CHECK(name_bits >= 8 && name_bits <= 256 && name_bits % 8 == 0);
  return {.name = root, .ids = xxh3_128(root), .position = 0, .name_bits = name_bits};
}

PrefixPoint next_point(const PrefixPoint& point, std::span<const std::int32_t> tokens) {
  PrefixPoint next = {.name = page_name(point.name, tokens),
                      .ids = {},
                      .position = point.position + static_cast<std::int64_t>(tokens.size()),
                      .name_bits = point.name_bits};
  std::fill(next.name.begin() + point.name_bits / 8, next.name.end(), std::byte{0});
  std::vector<std::byte> bytes;
  bytes.reserve(kChecksumBytes + (tokens.size() + 1) * sizeof(std::int32_t));
  append_number(bytes, point.ids.low);
  append_number(bytes, point.ids.high);
  append_tokens(bytes, tokens);
  next.ids = xxh3_128(bytes);
  return next;
}

}  // namespace locket::cache
