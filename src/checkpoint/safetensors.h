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
#include "checkpoint/tensor_file.h"

namespace locket::checkpoint {

class SafetensorsFile final : public TensorFile {
 public:
  // kBadCheckpoint for a file that breaks the format, kUnsupported for a dtype that is not known
  // here; both name the file and the tensor. The header may be as long as the file allows.
  [[nodiscard]] static Result<SafetensorsFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const override { return file_.path(); }
  std::span<const TensorEntry> tensors() const override { return tensors_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // nullptr if there is none.
  const TensorEntry* find(std::string_view name) const;

  [[nodiscard]] Status read_range(const TensorEntry& entry, std::uint64_t first_byte,
                                  std::span<std::byte> target) const override;

 private:
  explicit SafetensorsFile(File file) : file_(std::move(file)) {}

  File file_;
  std::vector<TensorEntry> tensors_;
  std::vector<std::uint32_t> by_name_;  // indices into tensors_
  std::map<std::string, std::string> metadata_;
};

}  // namespace locket::checkpoint
