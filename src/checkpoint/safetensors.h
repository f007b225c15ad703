// One safetensors file: its header is read and checked completely when it is opened, the data only
// when asked for. After open() every entry is known to be in range, of a known dtype, with
// byte_count == shape x dtype; the entries fill the data part without overlap or hole.
// Immutable after open(); reading is thread-safe. Entries live as long as the object and keep
// their addresses when it is moved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "numerics/dtype.h"
#include "tensor/aligned_buffer.h"
#include "tensor/shape.h"

namespace locket::checkpoint {

struct TensorEntry {
  std::string name;
  numerics::Dtype dtype = numerics::Dtype::kF32;
  tensor::Shape shape;
  std::uint64_t offset = 0;  // from the start of the file
  std::uint64_t byte_count = 0;
};

class SafetensorsFile {
 public:
  // kBadCheckpoint for a file that breaks the format, kUnsupported for a dtype that is not known
  // here; both name the file and the tensor. The header may be as long as the file allows.
  [[nodiscard]] static Result<SafetensorsFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return file_.path(); }
  // In the order of the data.
  std::span<const TensorEntry> tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // nullptr if there is none.
  const TensorEntry* find(std::string_view name) const;

  // Errors of reading name the tensor, the file and the offset. REQUIRES: `entry` is of this file.
  [[nodiscard]] Result<tensor::AlignedBuffer> read(const TensorEntry& entry) const;
  // REQUIRES: target.size() == entry.byte_count.
  [[nodiscard]] Status read_into(const TensorEntry& entry, std::span<std::byte> target) const;
  // Fills `target` from byte `first_byte` of the tensor on.
  // REQUIRES: first_byte + target.size() <= entry.byte_count.
  [[nodiscard]] Status read_range(const TensorEntry& entry, std::uint64_t first_byte,
                                  std::span<std::byte> target) const;

 private:
  explicit SafetensorsFile(File file) : file_(std::move(file)) {}

  File file_;
  std::vector<TensorEntry> tensors_;
  std::vector<std::uint32_t> by_name_;  // indices into tensors_
  std::map<std::string, std::string> metadata_;
};

}  // namespace locket::checkpoint
