// Files as the rest of the program sees them: read at an offset, whole reads and whole writes,
// every error with the path and the reason. Reads loop over short reads and EINTR; a file that ends
// early is an error that names the offset. Thread-safe: read_at() has no position of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"

namespace locket {

class File {
 public:
  // Opens an existing regular file for reading.
  [[nodiscard]] static Result<File> open_for_reading(const std::filesystem::path& path);

  File(File&& other) noexcept;
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  // Fills `target` from `offset` bytes on. kIo if the file ends before: the message names path,
  // offset, bytes wanted and bytes found.
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> target) const;

  // Size in bytes when the file was opened.
  std::uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }

  // For tests of the reading loop: no single system call reads more than this many bytes.
  void limit_read_call_bytes(std::size_t limit) { read_call_limit_ = limit; }

 private:
  File(int descriptor, std::uint64_t size, std::filesystem::path path);

  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::size_t read_call_limit_;
  std::filesystem::path path_;
};

// The whole file as bytes. kIo with the path if it is larger than `max_bytes`.
[[nodiscard]] Result<std::string> read_whole_file(const std::filesystem::path& path,
                                                  std::uint64_t max_bytes = std::uint64_t{1} << 30);

// Writes a whole file: a temporary name beside it, then a rename, so that no reader sees half of
// it.
[[nodiscard]] Status write_whole_file(const std::filesystem::path& path,
                                      std::span<const std::byte> content);

}  // namespace locket
