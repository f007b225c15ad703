#include "checkpoint/internal/file_stream.h"

#include <algorithm>
#include <span>

namespace locket::checkpoint::internal {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{1} << 18;

}  // namespace

FileStream::FileStream(const File& file, std::uint64_t offset, std::uint64_t byte_count)
    : file_(file), offset_(offset), left_(byte_count) {}

FileStream::int_type FileStream::underflow() {
  if (left_ == 0 || !status_) return traits_type::eof();
  piece_.resize(static_cast<std::size_t>(std::min(left_, kPieceBytes)));
  status_ = file_.read_at(offset_, std::as_writable_bytes(std::span(piece_)));
  if (!status_) return traits_type::eof();
  std::ranges::replace(piece_, '\0', '\x01');
  offset_ += piece_.size();
  left_ -= piece_.size();
  setg(piece_.data(), piece_.data(), piece_.data() + piece_.size());
  return traits_type::to_int_type(piece_.front());
}

}  // namespace locket::checkpoint::internal
