#include "cache/kv_layout.h"

#include <algorithm>

#include "base/check.h"

namespace locket::cache {

std::size_t KvLayout::page_bytes() const { return part_offset(PagePart::kCount); }

std::size_t KvLayout::ring_bytes() const { return ring_offset(rings.size()); }

std::size_t KvLayout::snapshot_bytes() const {
  std::size_t kept = 0;
  while (kept < rings.size() && rings[kept].kind == RingStream::Kind::kKept) kept += 1;
  for (std::size_t ring = kept; ring < rings.size(); ++ring) {
    LOCKET_CHECK(rings[ring].kind == RingStream::Kind::kRebuilt);
  }
  return ring_offset(kept);
}

double KvLayout::bytes_per_token() const {
  return static_cast<double>(page_bytes()) / static_cast<double>(kTokensPerPage);
}

std::size_t KvLayout::part_offset(PagePart part) const {
  std::size_t offset = 0;
  for (const RowStream& stream : streams) offset += stream.part < part ? stream.page_bytes() : 0;
  return offset;
}

std::size_t KvLayout::part_bytes(PagePart part) const {
  std::size_t bytes = 0;
  for (const RowStream& stream : streams) bytes += stream.part == part ? stream.page_bytes() : 0;
  return bytes;
}

std::size_t KvLayout::stream_offset(std::size_t stream) const {
  LOCKET_CHECK(stream < streams.size());
  std::size_t offset = part_offset(streams[stream].part);
  for (std::size_t i = 0; i < stream; ++i) {
    offset += streams[i].part == streams[stream].part ? streams[i].page_bytes() : 0;
  }
  return offset;
}

std::size_t KvLayout::ring_offset(std::size_t ring) const {
  LOCKET_CHECK(ring <= rings.size());
  std::size_t offset = 0;
  for (std::size_t i = 0; i < ring; ++i) offset += rings[i].bytes();
  return offset;
}

std::int64_t KvLayout::largest_tokens_per_row() const {
  std::int64_t largest = 1;
  for (const RowStream& stream : streams) largest = std::max(largest, stream.tokens_per_row);
  return largest;
}

std::int64_t page_count(std::int64_t token_count) {
  return (token_count + kTokensPerPage - 1) / kTokensPerPage;
}

}  // namespace locket::cache
