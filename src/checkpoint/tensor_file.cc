#include "checkpoint/tensor_file.h"

#include "base/check.h"

namespace locket::checkpoint {

Result<tensor::AlignedBuffer> TensorFile::read(const TensorEntry& entry) const {
  tensor::AlignedBuffer buffer(static_cast<std::size_t>(entry.byte_count));
  LOCKET_TRY_STATUS(read_into(entry, buffer.bytes()));
  return buffer;
}

Status TensorFile::read_into(const TensorEntry& entry, std::span<std::byte> target) const {
  LOCKET_CHECK(target.size() == entry.byte_count);
  return read_range(entry, 0, target);
}

Status TensorFile::read_codes(const TensorEntry& /*entry*/, std::span<std::byte> /*codes*/,
                              std::span<float> /*scales*/) const {
  LOCKET_CHECK(false);
}

}  // namespace locket::checkpoint
