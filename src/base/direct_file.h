// Large reads that go past the system's page cache: what is restored once is not wanted there, and
// the copy into it would cost more than the read. Where the file system refuses direct reads they
// are ordinary ones. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "base/result.h"

namespace locket {

// Offsets, lengths and addresses of direct reads are multiples of this.
inline constexpr std::size_t kDirectReadAlignment = 4096;
// What most devices can do with less.
inline constexpr std::size_t kSectorBytes = 512;

// Bytes for direct reads: aligned, and in huge pages where the system has them. Movable.
class DirectBuffer {
 public:
  DirectBuffer() = default;
  explicit DirectBuffer(std::size_t bytes);  // rounded up to the alignment
  std::span<std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* pointer) const;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

class DirectFile {
 public:
  // Files of ours are not reached through links; folders of downloaded models consist of them.
  enum class Links { kRefused, kFollowed, kCount };
  // kNotFound if there is none; kIo otherwise.
  [[nodiscard]] static Result<DirectFile> open(const std::filesystem::path& path,
                                               Links links = Links::kRefused);
  DirectFile(DirectFile&& other) noexcept;
  DirectFile& operator=(DirectFile&& other) noexcept;
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;
  ~DirectFile();

  // Fills `target` from `offset` on; how many bytes there were before the file's end. REQUIRES:
  // offset, address and length are aligned.
  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> target) const;
  // Fills `targets` one after the other with consecutive bytes, without a copy on the way. kIo
  // where the file ends before, and where the device wants more than these alignments. REQUIRES:
  // is_direct(); offset, addresses and lengths are multiples of kSectorBytes.
  [[nodiscard]] Status read_scattered(std::uint64_t offset,
                                      std::span<const std::span<std::byte>> targets) const;

  bool is_direct() const { return is_direct_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  DirectFile(int descriptor, std::filesystem::path path);

  int descriptor_ = -1;
  bool is_direct_ = false;
  std::filesystem::path path_;
};

}  // namespace locket
