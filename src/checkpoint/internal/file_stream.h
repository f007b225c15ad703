// A part of a File as a character stream, for the JSON parser. A failed read ends the stream and is
// kept in status(). The parser takes a NUL for the end of its input and would pass over what
// follows, so a NUL is handed out as U+0001, which JSON forbids everywhere, too.
#pragma once

#include <cstdint>
#include <streambuf>
#include <vector>

#include "base/file.h"
#include "base/result.h"

namespace locket::checkpoint::internal {

class FileStream : public std::streambuf {
 public:
  // REQUIRES: offset + byte_count <= file.size(); `file` outlives the stream.
  FileStream(const File& file, std::uint64_t offset, std::uint64_t byte_count);

  const Status& status() const { return status_; }

 protected:
  int_type underflow() override;

 private:
  const File& file_;
  std::uint64_t offset_;
  std::uint64_t left_;
  std::vector<char> piece_;
  Status status_;
};

}  // namespace locket::checkpoint::internal
