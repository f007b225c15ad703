#include "cache/internal/segment_space.h"

#include <limits>

namespace locket::cache {
namespace {

constexpr std::uint16_t kMostUsers = std::numeric_limits<std::uint16_t>::max();

std::uint64_t first_block(const StoredValue& value) {
  return value.offset / SegmentSpace::kBlockBytes;
}

std::uint64_t end_block(const StoredValue& value) {
  return (value.offset + value.bytes + SegmentSpace::kBlockBytes - 1) / SegmentSpace::kBlockBytes;
}

void add_block(std::vector<SegmentSpace::Range>& ranges, std::uint32_t segment,
               std::uint64_t block) {
  const std::uint64_t offset = block * SegmentSpace::kBlockBytes;
  if (!ranges.empty() && ranges.back().offset + ranges.back().bytes == offset) {
    ranges.back().bytes += SegmentSpace::kBlockBytes;
  } else {
    ranges.push_back({.segment = segment, .offset = offset, .bytes = SegmentSpace::kBlockBytes});
  }
}

}  // namespace

void SegmentSpace::add(const StoredValue& value) {
  if (value.bytes == 0) return;
  Segment& segment = segments_[value.segment];
  const std::uint64_t end = end_block(value);
  if (segment.users.size() < end) segment.users.resize(end);
  for (std::uint64_t block = first_block(value); block < end; ++block) {
    std::uint16_t& users = segment.users[block];
    if (users == 0) ++segment.used_blocks;
    if (users < kMostUsers) ++users;
  }
}

std::vector<SegmentSpace::Range> SegmentSpace::remove(const StoredValue& value) {
  std::vector<Range> free;
  const auto found = segments_.find(value.segment);
  if (found == segments_.end() || value.bytes == 0) return free;
  Segment& segment = found->second;
  const std::uint64_t end = std::min<std::uint64_t>(end_block(value), segment.users.size());
  for (std::uint64_t block = first_block(value); block < end; ++block) {
    std::uint16_t& users = segment.users[block];
    if (users == 0 || users == kMostUsers) continue;
    if (--users > 0) continue;
    --segment.used_blocks;
    if (block > 0) add_block(free, value.segment, block);  // block 0 holds the header
  }
  return free;
}

bool SegmentSpace::is_used(std::uint32_t segment) const { return used_bytes(segment) > 0; }

std::uint64_t SegmentSpace::used_bytes(std::uint32_t segment) const {
  const auto found = segments_.find(segment);
  return found == segments_.end() ? 0 : found->second.used_blocks * kBlockBytes;
}

std::uint64_t SegmentSpace::used_end(std::uint32_t segment) const {
  const auto found = segments_.find(segment);
  if (found == segments_.end()) return 0;
  std::uint64_t block = found->second.users.size();
  while (block > 0 && found->second.users[block - 1] == 0) --block;
  return block * kBlockBytes;
}

std::vector<SegmentSpace::Range> SegmentSpace::gaps(std::uint32_t segment) const {
  std::vector<Range> free;
  const auto found = segments_.find(segment);
  if (found == segments_.end()) return free;
  const std::uint64_t end = used_end(segment) / kBlockBytes;
  for (std::uint64_t block = 1; block < end; ++block) {
    if (found->second.users[block] == 0) add_block(free, segment, block);
  }
  return free;
}

}  // namespace locket::cache
