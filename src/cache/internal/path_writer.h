// Puts a turn together for the disk: the pages of one path that are not there yet, and the
// snapshots that are wanted. Runs on the writer's thread; what it reads stays in place because the
// path is pinned.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cache/disk_store.h"
#include "cache/kv_layout.h"
#include "tensor/aligned_buffer.h"

namespace locket::cache {

// One page of the path as the tree knew it.
struct PathPage {
  PrefixPoint parent;
  PrefixPoint end;
  std::vector<std::int32_t> tokens;
  const std::byte* data = nullptr;
  std::shared_ptr<const tensor::AlignedBuffer> snapshot = {};  // to be written; may be null
};

class PathWriter {
 public:
  PathWriter(DiskStore& disk, const KvLayout& layout, PageSizes sizes)
      : disk_(disk), layout_(layout), sizes_(std::move(sizes)) {}

  // Adds the pages of `path` that are not stored to `turn`, with their snapshots, and writes it.
  // Spans of the turn point into this object and the pages.
  [[nodiscard]] Status write(const std::vector<PathPage>& path, TurnWrite turn);

 private:
  std::span<const std::byte> part(const PathPage& page, PagePart part);

  DiskStore& disk_;
  const KvLayout& layout_;
  PageSizes sizes_;
  std::deque<std::vector<std::byte>> packed_;  // parts of tails
};

}  // namespace locket::cache
