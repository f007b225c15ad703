#include "cache/page_parts.h"

#include <cstring>
#include <memory>

#include "base/check.h"

namespace locket::cache {
namespace {

std::size_t bytes_of_tokens(const RowStream& stream, std::int64_t tokens) {
  return static_cast<std::size_t>(tokens / stream.tokens_per_row) * stream.row_bytes;
}

}  // namespace

std::size_t packed_bytes(const KvLayout& layout, PagePart part, std::int64_t tokens) {
  std::size_t bytes = 0;
  for (const RowStream& stream : layout.streams) {
    bytes += stream.part == part ? bytes_of_tokens(stream, tokens) : 0;
  }
  return bytes;
}

PageSizes page_sizes_of(const KvLayout& layout) {
  const auto shared = std::make_shared<const KvLayout>(layout);
  const auto bytes_of = [shared](PagePart part) {
    return [shared, part](std::int64_t tokens) { return packed_bytes(*shared, part, tokens); };
  };
  return {.key_bytes = bytes_of(PagePart::kKeys),
          .row_bytes = bytes_of(PagePart::kRows),
          .snapshot_bytes = layout.snapshot_bytes()};
}

void pack_part(const KvLayout& layout, PagePart part, std::int64_t tokens, const std::byte* page,
               std::span<std::byte> packed) {
  LOCKET_CHECK(packed.size() == packed_bytes(layout, part, tokens));
  std::byte* to = packed.data();
  for (std::size_t i = 0; i < layout.streams.size(); ++i) {
    if (layout.streams[i].part != part) continue;
    const std::size_t bytes = bytes_of_tokens(layout.streams[i], tokens);
    std::memcpy(to, page + layout.stream_offset(i), bytes);
    to += bytes;
  }
}

void unpack_part(const KvLayout& layout, PagePart part, std::int64_t tokens,
                 std::span<const std::byte> packed, std::byte* page) {
  LOCKET_CHECK(packed.size() == packed_bytes(layout, part, tokens));
  const std::byte* from = packed.data();
  for (std::size_t i = 0; i < layout.streams.size(); ++i) {
    if (layout.streams[i].part != part) continue;
    const std::size_t bytes = bytes_of_tokens(layout.streams[i], tokens);
    std::memcpy(page + layout.stream_offset(i), from, bytes);
    from += bytes;
  }
}

void copy_rows(const KvLayout& layout, std::int64_t tokens, const std::byte* from, std::byte* to) {
  for (std::size_t i = 0; i < layout.streams.size(); ++i) {
    const std::size_t offset = layout.stream_offset(i);
    std::memcpy(to + offset, from + offset, bytes_of_tokens(layout.streams[i], tokens));
  }
}

}  // namespace locket::cache
