// Numbers and strings of a GGUF file, one after the other, never beyond its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace locket::checkpoint::internal {

// For messages about strings of a GGUF file, which may hold any bytes: short, and ASCII.
std::string shown_ascii(std::string_view text);

class GgufStream {
 public:
  // REQUIRES: `file` outlives the stream.
  explicit GgufStream(const File& file) : file_(file) {}

  std::uint64_t offset() const { return offset_; }
  std::uint64_t left() const { return file_.size() - offset_; }

  // Little-endian, as every machine that this program runs on. kBadCheckpoint at the file's end.
  template <class T>
  [[nodiscard]] Result<T> number() {
    T value;
    LOCKET_TRY_STATUS(read(std::as_writable_bytes(std::span(&value, 1)), "a number"));
    return value;
  }
  // A length, then so many bytes.
  [[nodiscard]] Result<std::string> string();
  // The same, for the name of a key or a tensor: the format has them in ASCII.
  [[nodiscard]] Result<std::string> name();
  // How many things of at least `least_bytes` each follow; refused if the file cannot hold them.
  [[nodiscard]] Result<std::uint64_t> count(std::string_view what, std::uint64_t least_bytes);

  [[nodiscard]] tl::unexpected<Error> bad(std::string_view what) const;

 private:
  [[nodiscard]] Status read(std::span<std::byte> target, std::string_view what);

  const File& file_;
  std::uint64_t offset_ = 0;
  std::vector<std::byte> piece_;    // of the file, read ahead
  std::uint64_t piece_offset_ = 0;  // of piece_
};

}  // namespace locket::checkpoint::internal
