// What a restart costs: the real store writes a made-up prefix in turns, with the page sizes of the
// release; then a store that knows nothing finds it and loads it, beside a plain read of as many
// bytes (O_DIRECT, 1 MiB blocks, 4 threads) into memory of the same kind. For `locket bench` and
// the benchmark of restores.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "base/direct_file.h"
#include "base/result.h"

namespace locket::cli {

// Where the bytes go to.
enum class RestoreTarget {
  kReused,  // plain reads only: a block for each thread, so small that caches keep it
  kHeld,    // memory for all bytes that the process has already
  kFresh,   // memory for all bytes, new from the system, as a restart needs it
  kCount
};

struct RestoreSeconds {
  double open = 0;
  double find = 0;   // from here on without open
  double first = 0;  // keys and the snapshot are there: the first layer can start
  double all = 0;
};

// Makes its files when it is made, and removes them with itself. Not thread-safe.
class RestoreTrial {
 public:
  // `tokens`: a multiple of the page's, at least 20 pages. kIo and the store's errors.
  [[nodiscard]] static Result<RestoreTrial> make(const std::filesystem::path& scratch,
                                                 std::size_t tokens);
  RestoreTrial(RestoreTrial&& other) noexcept;
  RestoreTrial& operator=(RestoreTrial&&) = delete;
  RestoreTrial(const RestoreTrial&) = delete;
  RestoreTrial& operator=(const RestoreTrial&) = delete;
  ~RestoreTrial();

  // After the files were dropped from the system's cache. REQUIRES: not kReused.
  [[nodiscard]] Result<RestoreSeconds> restore(RestoreTarget target, std::size_t threads) const;
  // Seconds of the plain read.
  [[nodiscard]] Result<double> read_plainly(RestoreTarget target) const;

  std::size_t tokens() const { return tokens_.size(); }
  // Of a restore, and of the plain file.
  std::size_t byte_count() const;
  std::size_t snapshot_count() const { return snapshots_.size(); }
  std::size_t snapshot_bytes() const;
  std::uint64_t disk_bytes() const;  // of the store's folder
  // Bytes that the store was given.
  std::uint64_t payload_bytes() const { return payload_bytes_; }

 private:
  RestoreTrial(std::filesystem::path folder, std::size_t tokens);
  [[nodiscard]] Status write_prefix();
  [[nodiscard]] Status write_plain_file() const;
  std::filesystem::path plain_path() const { return folder_.string() + ".plain"; }

  std::filesystem::path folder_;  // empty: moved away
  std::vector<std::int32_t> tokens_;
  std::vector<std::size_t> snapshots_;  // positions
  DirectBuffer held_;
  std::uint64_t payload_bytes_ = 0;
};

}  // namespace locket::cli
