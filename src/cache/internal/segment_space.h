// Which blocks of the segment files are in use: how many payloads touch each block of 4 KiB. A
// block that nothing touches can be given back. Two bytes per block. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "cache/disk_store.h"

namespace locket::cache {

class SegmentSpace {
 public:
  static constexpr std::uint64_t kBlockBytes = 4096;

  struct Range {
    std::uint32_t segment = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
  };

  void add(const StoredValue& value);
  // The blocks that are free now, as ranges.
  std::vector<Range> remove(const StoredValue& value);

  // Whether any payload lies in the segment.
  bool is_used(std::uint32_t segment) const;
  // The end of its last block in use; 0 if there is none.
  std::uint64_t used_end(std::uint32_t segment) const;
  // Bytes of its blocks in use.
  std::uint64_t used_bytes(std::uint32_t segment) const;
  // All unused blocks before used_end(), without the one of the header.
  std::vector<Range> gaps(std::uint32_t segment) const;
  void forget(std::uint32_t segment) { segments_.erase(segment); }
  void clear() { segments_.clear(); }

 private:
  struct Segment {
    std::vector<std::uint16_t> users;  // per block; once at the top it stays there
    std::uint64_t used_blocks = 0;
  };
  std::map<std::uint32_t, Segment> segments_;
};

}  // namespace locket::cache
