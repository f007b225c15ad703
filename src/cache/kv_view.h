// The memory of one sequence as the model sees it: rows and ring slots as byte spans. Pages may lie
// anywhere and in any order. A view: pool and sequence own the bytes and must outlive it.
// Writing needs exclusive use of the sequence; reading alone is thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "cache/kv_layout.h"

namespace locket::cache {

// Rows that are still on their way into memory; keys and rings are there. Thread-safe.
class RowGate {
 public:
  RowGate() = default;
  RowGate(const RowGate&) = delete;
  RowGate& operator=(const RowGate&) = delete;
  virtual ~RowGate() = default;

  // Returns when all rows are there. kBadMemory if some cannot be had: the run must begin anew with
  // what is left.
  [[nodiscard]] virtual Status wait() = 0;
  // Whether wait() would return at once.
  virtual bool is_open() const = 0;
};

class KvView {
 public:
  // `gate` may be null: every row is there.
  KvView(const KvLayout& layout, std::vector<std::byte*> pages, std::byte* rings,
         RowGate* gate = nullptr);

  // Before rows of earlier runs are read. Errors of RowGate.
  [[nodiscard]] Status wait_for_rows() const;

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
  RowGate* gate_;
  std::vector<std::size_t> stream_offsets_;
  std::vector<std::size_t> ring_offsets_;
};

}  // namespace locket::cache
