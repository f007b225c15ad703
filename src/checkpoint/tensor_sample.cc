#include "checkpoint/tensor_sample.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <optional>
#include <span>

namespace locket::checkpoint {
namespace {

using numerics::Dtype;

constexpr std::size_t kMostFindings = 8;
constexpr std::size_t kStretches = 3;
constexpr std::size_t kAlignment = 64;  // whole elements of every type

// What is wrong with a bit pattern; null: it is a number.
const char* fault_of(Dtype dtype, std::uint32_t bits) {
  const auto float_fault = [&](std::uint32_t exponent, std::uint32_t mantissa) -> const char* {
    if ((bits & exponent) != exponent) return nullptr;
    return (bits & mantissa) != 0 ? "NaN" : "an infinity";
  };
  switch (dtype) {
    case Dtype::kF32:
      return float_fault(0x7F800000u, 0x007FFFFFu);
    case Dtype::kBf16:
      return float_fault(0x7F80u, 0x007Fu);
    case Dtype::kF16:
      return float_fault(0x7C00u, 0x03FFu);
    case Dtype::kFp8E5m2:
      return float_fault(0x7Cu, 0x03u);
    case Dtype::kFp8E4m3:
      return (bits & 0x7Fu) == 0x7Fu ? "NaN" : nullptr;
    case Dtype::kE8m0:
      return bits == 0xFFu ? "NaN" : nullptr;
    case Dtype::kFp4E2m1:
    case Dtype::kI8:
    case Dtype::kU8:
    case Dtype::kI32:
    case Dtype::kI64:
    case Dtype::kBool:
    case Dtype::kCount:
      break;
  }
  return nullptr;
}

// The first fault in a stretch of a tensor, as "NaN at element 17".
std::optional<std::string> find_fault(Dtype dtype, std::span<const std::byte> bytes,
                                      std::uint64_t first_byte) {
  const std::size_t size = std::max<std::size_t>(1, numerics::bits_of(dtype) / 8);
  if (size > sizeof(std::uint32_t)) return std::nullopt;
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, bytes.data() + at, size);
    const char* const fault = fault_of(dtype, bits);
    if (fault != nullptr) return fmt::format("{} at element {}", fault, (first_byte + at) / size);
  }
  return std::nullopt;
}

class Sampler {
 public:
  explicit Sampler(std::size_t bytes_per_tensor)
      : stretch_(std::max(kAlignment, bytes_per_tensor / kStretches / kAlignment * kAlignment)) {}

  Status look_into(const StoredTensor& tensor) {
    ++sample_.tensors;
    const std::uint64_t size = tensor.byte_count();
    if (size <= kStretches * stretch_) {
      LOCKET_TRY_STATUS(read_stretch(tensor, 0, size));
      return {};
    }
    const std::uint64_t middle = size / 2 / kAlignment * kAlignment;
    const std::uint64_t end = (size - stretch_ + kAlignment - 1) / kAlignment * kAlignment;
    for (const std::uint64_t first : {std::uint64_t{0}, middle, end}) {
      LOCKET_TRY(const bool is_sound,
                 read_stretch(tensor, first, std::min<std::uint64_t>(stretch_, size - first)));
      if (!is_sound) break;
    }
    return {};
  }

  TensorSample take() { return std::move(sample_); }

 private:
  // False: something is wrong there, and noted.
  Result<bool> read_stretch(const StoredTensor& tensor, std::uint64_t first, std::uint64_t bytes) {
    buffer_.resize(bytes);
    LOCKET_TRY_STATUS(tensor.read_range(first, buffer_));
    sample_.bytes += bytes;
    const std::optional<std::string> fault = find_fault(tensor.dtype, buffer_, first);
    if (!fault) return true;
    ++sample_.broken;
    if (sample_.findings.size() < kMostFindings) {
      sample_.findings.push_back(fmt::format("tensor {} in {}: {}", tensor.name(),
                                             tensor.file->path().filename().string(), *fault));
    }
    return false;
  }

  std::size_t stretch_;
  std::vector<std::byte> buffer_;
  TensorSample sample_;
};

}  // namespace

Result<TensorSample> sample_tensors(
    const Checkpoint& checkpoint, std::size_t bytes_per_tensor,
    const std::function<void(std::size_t done, std::size_t total)>& on_progress) {
  Sampler sampler(bytes_per_tensor);
  std::size_t done = 0;
  for (const StoredTensor& tensor : checkpoint.tensors()) {
    LOCKET_TRY_STATUS(sampler.look_into(tensor));
    if (on_progress) on_progress(++done, checkpoint.tensor_count());
  }
  return sampler.take();
}

}  // namespace locket::checkpoint
