#include "checkpoint/internal/gguf_stream.h"

#include <algorithm>
#include <fmt/format.h>

#include "checkpoint/internal/error_text.h"

namespace locket::checkpoint::internal {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 20;

bool is_shown(char byte) { return byte >= ' ' && byte <= '~'; }

}  // namespace

std::string shown_ascii(std::string_view text) {
  std::string shown = printable(text);
  std::ranges::replace_if(
      shown, [](char byte) { return !is_shown(byte); }, '?');
  return shown;
}

tl::unexpected<Error> GgufStream::bad(std::string_view what) const {
  return fail(ErrorCode::kBadCheckpoint,
              fmt::format("{}: at byte {}: {}", file_.path().string(), offset_, what));
}

Status GgufStream::read(std::span<std::byte> target, std::string_view what) {
  if (target.size() > left()) {
    return bad(fmt::format("the file ends after {} bytes, where {} of {} bytes should be",
                           file_.size(), what, target.size()));
  }
  std::size_t done = 0;
  while (done < target.size()) {
    const std::uint64_t piece_end = piece_offset_ + piece_.size();
    if (offset_ < piece_offset_ || offset_ >= piece_end) {
      piece_.resize(static_cast<std::size_t>(std::min(kPieceBytes, left())));
      piece_offset_ = offset_;
      LOCKET_TRY_STATUS(file_.read_at(piece_offset_, piece_));
      continue;
    }
    const auto from = static_cast<std::size_t>(offset_ - piece_offset_);
    const std::size_t bytes = std::min(target.size() - done, piece_.size() - from);
    std::memcpy(target.data() + done, piece_.data() + from, bytes);
    done += bytes;
    offset_ += bytes;
  }
  return {};
}

Result<std::string> GgufStream::string() {
  LOCKET_TRY(const std::uint64_t length, count("bytes of a string", 1));
  std::string text(static_cast<std::size_t>(length), '\0');
  LOCKET_TRY_STATUS(read(std::as_writable_bytes(std::span(text)), "a string"));
  return text;
}

Result<std::string> GgufStream::name() {
  LOCKET_TRY(std::string text, string());
  if (!text.empty() && std::ranges::all_of(text, is_shown)) return text;
  return bad(fmt::format("the name \"{}\" (ASCII text is needed)", shown_ascii(text)));
}

Result<std::uint64_t> GgufStream::count(std::string_view what, std::uint64_t least_bytes) {
  LOCKET_TRY(const auto count, number<std::uint64_t>());
  if (count <= left() / least_bytes) return count;
  return bad(fmt::format("{} {} are announced, and only {} bytes follow", count, what, left()));
}

}  // namespace locket::checkpoint::internal
