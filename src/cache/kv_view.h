// The memory of one sequence as the model sees it: rows and ring slots as byte spans. Pages may lie
// anywhere and in any order. A view: pool and sequence own the bytes and must outlive it.
// Writing needs exclusive use of the sequence; reading alone is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cache/kv_layout.h"

namespace locket::cache {

class KvView {
 public:
  KvView(const KvLayout& layout, std::vector<std::byte*> pages, std::byte* rings);

  const KvLayout& layout() const { return *layout_; }
  // Rows of `stream` that the pages have room for.
  std::int64_t row_capacity(std::size_t stream) const;

  // REQUIRES: 0 <= row < row_capacity(stream).
  std::span<std::byte> row(std::size_t stream, std::int64_t row) const;
  // The slot of `position` in ring `ring`. REQUIRES: position >= 0.
  std::span<std::byte> ring_slot(std::size_t ring, std::int64_t position) const;

 private:
  const KvLayout* layout_;
  std::vector<std::byte*> pages_;
  std::byte* rings_;
  std::vector<std::size_t> stream_offsets_;
  std::vector<std::size_t> ring_offsets_;
};

}  // namespace locket::cache
