// Reads payloads out of segment files: past the page cache, neighbours in one read of about 1 MB,
// on several threads that also compare checksums. What cannot be read, or is not what its record
// says, is reported, never an error. Thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/direct_file.h"
#include "base/worker_pool.h"
#include "cache/disk_store.h"
#include "cache/storage_faults.h"

namespace locket::cache {

class SegmentReader {
 public:
  SegmentReader(std::filesystem::path folder, std::size_t threads,
                std::shared_ptr<StorageFaults> faults);

  // The indices of the payloads that are not there or not right, ascending; their targets hold
  // anything.
  std::vector<std::size_t> load(std::span<const PayloadLoad> loads) const;
  // Opened files are opened anew when they are needed.
  void forget_files();

 private:
  struct Run;  // payloads that lie side by side
  using Runs = std::vector<Run>;
  // What one thread needs.
  struct Lane {
    DirectBuffer buffer;
    std::vector<std::size_t> bad;
  };

  std::shared_ptr<const DirectFile> file_of(std::uint32_t segment) const;
  std::shared_ptr<const DirectFile> open_file(std::uint32_t segment) const;
  Runs plan(std::span<const PayloadLoad> loads, std::vector<std::size_t>& bad) const;
  void read_run(const Run& run, std::span<const PayloadLoad> loads, Lane& lane) const;
  // Straight to where the payloads go, if everything is aligned; false: it has to be another way.
  bool read_in_place(const Run& run, std::span<const PayloadLoad> loads) const;
  bool fill(const Run& run, std::span<std::byte> target) const;

  const std::filesystem::path folder_;
  const std::size_t threads_;
  const std::shared_ptr<StorageFaults> faults_;
  mutable std::mutex files_mutex_;
  mutable std::map<std::uint32_t, std::shared_ptr<const DirectFile>> files_;
  // One load at a time has the threads; another one meanwhile does without.
  mutable std::mutex pool_mutex_;
  mutable std::unique_ptr<WorkerPool> pool_;
  mutable std::vector<Lane> lanes_;
};

}  // namespace locket::cache
