#include "server/internal/chunk_decoder.h"

#include <algorithm>

namespace locket::server {
namespace {

constexpr std::size_t kMaxSizeDigits = 15;  // fits into 64 bits with room to add
constexpr std::size_t kMaxOverheadBytes = 16 * 1024;

int hex_value(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

}  // namespace

ChunkDecoder::State ChunkDecoder::decode(std::string_view& bytes, std::string& body) {
  State state = State::kMore;
  while (!bytes.empty() && state == State::kMore) {
    if (part_ == Part::kData) {
      state = take_data(bytes, body);
      continue;
    }
    state = take_letter(bytes.front());
    bytes.remove_prefix(1);
  }
  return state;
}

ChunkDecoder::State ChunkDecoder::take_data(std::string_view& bytes, std::string& body) {
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  body.append(bytes.substr(0, count));
  bytes.remove_prefix(count);
  left_ -= count;
  if (left_ == 0) part_ = Part::kDataEnd;
  return State::kMore;
}

// Every line ends with CR LF; what stands before it depends on the part.
ChunkDecoder::State ChunkDecoder::take_letter(char letter) {
  if (letter == '\r' && !is_after_return_) {
    is_after_return_ = true;
    return State::kMore;
  }
  const bool is_line_end = is_after_return_ && letter == '\n';
  if (!is_line_end && (is_after_return_ || letter == '\n')) return State::kBad;
  is_after_return_ = false;
  switch (part_) {
    case Part::kSize:
      return is_line_end ? end_size_line() : take_size_letter(letter);
    case Part::kExtension:
      if (is_line_end) return end_size_line();
      return ++overhead_bytes_ > kMaxOverheadBytes ? State::kBad : State::kMore;
    case Part::kDataEnd:
      part_ = Part::kSize;
      return is_line_end ? State::kMore : State::kBad;
    case Part::kTrailer:
      if (is_line_end) return end_trailer_line();
      line_bytes_ += 1;
      return ++overhead_bytes_ > kMaxOverheadBytes ? State::kBad : State::kMore;
    case Part::kData:
    case Part::kCount:
      break;
  }
  return State::kBad;
}

ChunkDecoder::State ChunkDecoder::take_size_letter(char letter) {
  if (letter == ';' || letter == ' ' || letter == '\t') {
    part_ = Part::kExtension;
    return digits_ > 0 ? State::kMore : State::kBad;
  }
  const int value = hex_value(letter);
  if (value < 0 || digits_ == kMaxSizeDigits) return State::kBad;
  left_ = left_ * 16 + static_cast<std::uint64_t>(value);
  digits_ += 1;
  return State::kMore;
}

ChunkDecoder::State ChunkDecoder::end_size_line() {
  if (digits_ == 0) return State::kBad;
  digits_ = 0;
  part_ = left_ == 0 ? Part::kTrailer : Part::kData;
  if (left_ > max_body_bytes_ - body_bytes_) return State::kTooLarge;
  body_bytes_ += static_cast<std::size_t>(left_);
  return State::kMore;
}

ChunkDecoder::State ChunkDecoder::end_trailer_line() {
  if (line_bytes_ == 0) return State::kComplete;
  line_bytes_ = 0;
  return State::kMore;
}

}  // namespace locket::server
