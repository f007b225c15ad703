// A file of named tensors, whatever its format: what it holds, and how the values of a tensor are
// read. Entries are checked when the file is opened. Immutable after that; reading is thread-safe.
// Entries live as long as the object and keep their addresses when it is moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"
#include "numerics/dtype.h"
#include "tensor/aligned_buffer.h"
#include "tensor/shape.h"

namespace locket::checkpoint {

// byte_count is that of the values as they are read: shape x dtype.
struct TensorEntry {
  std::string name;
  numerics::Dtype dtype = numerics::Dtype::kF32;
  tensor::Shape shape;
  std::uint64_t offset = 0;  // from the start of the file, of what is stored
  std::uint64_t byte_count = 0;
};

class TensorFile {
 public:
  TensorFile() = default;
  TensorFile(const TensorFile&) = delete;
  TensorFile& operator=(const TensorFile&) = delete;
  virtual ~TensorFile() = default;

  virtual const std::filesystem::path& path() const = 0;
  // In the order of the data.
  virtual std::span<const TensorEntry> tensors() const = 0;

  // Errors of reading name the tensor, the file and the offset. REQUIRES: `entry` is of this file.
  [[nodiscard]] Result<tensor::AlignedBuffer> read(const TensorEntry& entry) const;
  // REQUIRES: target.size() == entry.byte_count.
  [[nodiscard]] Status read_into(const TensorEntry& entry, std::span<std::byte> target) const;
  // Fills `target` from byte `first_byte` of the tensor's values on.
  // REQUIRES: first_byte + target.size() <= entry.byte_count.
  [[nodiscard]] virtual Status read_range(const TensorEntry& entry, std::uint64_t first_byte,
                                          std::span<std::byte> target) const = 0;

  // Bits of a code, 4 or 8, where every 32 values of a row are stored as codes without a sign, and
  // a value is code * scale + offset, product and sum each rounded to float32; 0: no such form.
  virtual unsigned code_bits(const TensorEntry& /*entry*/) const { return 0; }
  // All values in that form: codes [rows, columns] (of 4 bits: two a byte, the first in the low
  // half), scales [rows, columns / 32, 2]: scale, offset. Errors as read_range().
  // REQUIRES: code_bits(entry) > 0; the sizes fit.
  [[nodiscard]] virtual Status read_codes(const TensorEntry& entry, std::span<std::byte> codes,
                                          std::span<float> scales) const;

 protected:
  TensorFile(TensorFile&&) = default;
  TensorFile& operator=(TensorFile&&) = default;
};

}  // namespace locket::checkpoint
