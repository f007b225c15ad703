// A file of one's own that grows at its end: made once, never truncated by opening, private (0600),
// not reached through links. Errors are kIo with the path and the reason. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "base/result.h"

namespace locket {

class AppendFile {
 public:
  // kIo if there is a file of that name already.
  [[nodiscard]] static Result<AppendFile> create(const std::filesystem::path& path);
  // kNotFound if there is none.
  [[nodiscard]] static Result<AppendFile> open(const std::filesystem::path& path);

  AppendFile(AppendFile&& other) noexcept;
  AppendFile& operator=(AppendFile&& other) noexcept;
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();

  // The next append() begins here.
  std::uint64_t size() const { return size_; }
  const std::filesystem::path& path() const { return path_; }

  // Writes all of `bytes`, or cuts the file back to what it was.
  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  // Cuts the file to its first `size` bytes. REQUIRES: size <= size().
  [[nodiscard]] Status truncate(std::uint64_t size);
  // What was appended survives a power cut.
  [[nodiscard]] Status sync();
  // Gives whole blocks within the range back to the file system; they read as zeros. kUnsupported
  // where the file system cannot.
  [[nodiscard]] Status punch(std::uint64_t offset, std::uint64_t bytes);

 private:
  AppendFile(int descriptor, std::uint64_t size, std::filesystem::path path);

  int descriptor_ = -1;
  std::uint64_t size_ = 0;
  std::filesystem::path path_;
};

}  // namespace locket
