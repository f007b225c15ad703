// The chunked form of a request body, decoded while it arrives. Takes any split of the bytes, looks
// at each byte once, keeps nothing but a few counters. Extensions and trailers are read and
// dropped, within a limit. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace locket::server {

class ChunkDecoder {
 public:
  // A body of more than `max_body_bytes` ends in kTooLarge, at the latest when it is passed.
  explicit ChunkDecoder(std::size_t max_body_bytes) : max_body_bytes_(max_body_bytes) {}

  enum class State { kMore, kComplete, kBad, kTooLarge, kCount };

  // Appends what `bytes` hold of the body to `body` and takes from `bytes` what was used: all of
  // them in state kMore, up to the end of the body in state kComplete.
  State decode(std::string_view& bytes, std::string& body);

 private:
  enum class Part { kSize, kExtension, kData, kDataEnd, kTrailer, kCount };

  State take_data(std::string_view& bytes, std::string& body);
  State take_letter(char letter);
  State take_size_letter(char letter);
  State end_size_line();
  State end_trailer_line();

  std::size_t max_body_bytes_;
  std::size_t body_bytes_ = 0;
  std::uint64_t left_ = 0;          // of the chunk's size while it is read, then of its data
  std::size_t digits_ = 0;          // of the size
  std::size_t line_bytes_ = 0;      // of a trailer line
  std::size_t overhead_bytes_ = 0;  // of extensions and trailers together
  Part part_ = Part::kSize;
  bool is_after_return_ = false;
};

}  // namespace locket::server
