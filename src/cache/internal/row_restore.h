// Pages on their way from disk into a sequence: keys first, which the caller waits for, then rows,
// by the loader's thread. Not thread-safe but for wait() and is_open().
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/task_thread.h"
#include "cache/disk_store.h"
#include "cache/kv_layout.h"
#include "cache/kv_view.h"

namespace locket::cache {

class RowRestore final : public RowGate {
 public:
  RowRestore(DiskStore& disk, const KvLayout& layout) : disk_(disk), layout_(layout) {}
  ~RowRestore() override;

  // Reads the keys of the full pages of `match` into page buffers, and returns how many pages, from
  // the first on, are sound; the first one that is not is dropped from the store.
  std::size_t load_keys(const DiskMatch& match, std::span<std::byte* const> buffers);
  // Starts reading the rows of the first `count` pages.
  void start_rows(std::size_t count, TaskThread& loader);

  // Also drops what is damaged, once.
  [[nodiscard]] Status wait() override;
  bool is_open() const override;

  // All of one page at once; a page with fewer tokens than it has room for, too.
  static bool load_page(DiskStore& disk, const KvLayout& layout, const StoredPage& page,
                        std::byte* buffer);

  std::span<const StoredPage> pages() const { return pages_; }
  double seconds() const;

 private:
  void load_rows();

  DiskStore& disk_;
  const KvLayout& layout_;
  std::vector<StoredPage> pages_;
  std::shared_ptr<const void> hold_;  // of the pages, until their rows are there
  std::vector<std::byte*> buffers_;
  double start_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool is_running_ = false;
  double seconds_ = 0;
  std::vector<std::size_t> damaged_;
};

}  // namespace locket::cache
