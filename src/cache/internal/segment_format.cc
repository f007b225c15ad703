#include "cache/internal/segment_format.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fmt/format.h>

#include "cache/internal/byte_codec.h"

namespace locket::cache {
namespace {

constexpr std::array<std::string_view, kSegmentKinds> kKindNames = {"keys", "rows", "snap"};
constexpr std::string_view kSuffix = ".seg";
constexpr std::string_view kMagic = "LOCKETSG";
constexpr std::size_t kChecksumBytes = 16;

}  // namespace

std::string segment_file_name(const SegmentName& name) {
  return fmt::format("{}-{:06}{}", kKindNames[static_cast<std::size_t>(name.kind)], name.id,
                     kSuffix);
}

std::optional<SegmentName> parse_segment_file_name(std::string_view file) {
  const std::size_t dash = file.find('-');
  if (dash == std::string_view::npos || !file.ends_with(kSuffix)) return std::nullopt;
  const auto kind = std::find(kKindNames.begin(), kKindNames.end(), file.substr(0, dash));
  if (kind == kKindNames.end()) return std::nullopt;
  SegmentName name = {.kind = static_cast<SegmentKind>(kind - kKindNames.begin()), .id = 0};
  const std::string_view digits = file.substr(dash + 1, file.size() - dash - 1 - kSuffix.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), name.id);
  if (segment_file_name(name) != file) return std::nullopt;
  return name;
}

SegmentHeader make_segment_header(const SegmentName& name) {
  ByteWriter writer;
  writer.raw(std::as_bytes(std::span(kMagic)));
  writer.number(kSegmentFormat);
  writer.number(static_cast<std::uint32_t>(name.kind));
  writer.number(name.id);
  std::string bytes = writer.take();
  bytes.resize(kSegmentHeaderBytes - kChecksumBytes);
  ByteWriter tail;
  tail.checksum(xxh3_128(std::as_bytes(std::span(bytes))));
  bytes += tail.take();
  SegmentHeader header;
  std::memcpy(header.data(), bytes.data(), header.size());
  return header;
}

bool is_segment_header(std::span<const std::byte> bytes, const SegmentName& name) {
  const SegmentHeader expected = make_segment_header(name);
  return bytes.size() >= expected.size() &&
         std::equal(expected.begin(), expected.end(), bytes.begin());
}

}  // namespace locket::cache
