// A checkpoint: a folder with config.json and safetensors files, or one GGUF file in place of the
// folder. Tensors are found by name and checked when asked for. Nothing is written, and no tensor
// data is read before read().
// Reading tensors is thread-safe; require() is not, because it remembers what was claimed.
// StoredTensors are views into the Checkpoint, which must outlive them (moving it is fine).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/config_json.h"
#include "checkpoint/gguf.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/shard_index.h"

namespace locket::checkpoint {

// dtype and shape say what the bytes mean: packed FP4 is always kFp4E2m1 [n, k], whichever way the
// file declares it.
struct StoredTensor {
  const TensorFile* file = nullptr;
  const TensorEntry* entry = nullptr;
  numerics::Dtype dtype = numerics::Dtype::kF32;
  tensor::Shape shape;

  const std::string& name() const { return entry->name; }
  std::uint64_t byte_count() const { return entry->byte_count; }
  [[nodiscard]] Result<tensor::AlignedBuffer> read() const { return file->read(*entry); }
  [[nodiscard]] Status read_into(std::span<std::byte> target) const {
    return file->read_into(*entry, target);
  }
  // Fills `target` from byte `first_byte` of the tensor on.
  [[nodiscard]] Status read_range(std::uint64_t first_byte, std::span<std::byte> target) const {
    return file->read_range(*entry, first_byte, target);
  }
};

class Checkpoint {
 public:
  // A folder, or a file that is called *.gguf.
  [[nodiscard]] static Result<Checkpoint> open(const std::filesystem::path& folder);

  // What was opened: the folder, or the GGUF file.
  const std::filesystem::path& folder() const { return folder_; }
  const ConfigFile& config() const { return config_; }
  // Its safetensors files; a GGUF file is none.
  std::span<const SafetensorsFile> files() const { return files_; }
  // Null: a folder.
  const GgufFile* gguf() const { return gguf_.empty() ? nullptr : &gguf_.front(); }
  std::size_t tensor_count() const { return located_.size(); }
  // Every tensor as the files declare it, sorted by name.
  std::vector<StoredTensor> tensors() const;

  // As the file declares it; does not claim it.
  std::optional<StoredTensor> find(std::string_view name) const;

  // Finds, checks and claims a tensor. Errors name tensor, file, found and wanted.
  // kFp4E2m1 [n, k] also accepts I8 [n, k / 2], two codes a byte; k must be even.
  [[nodiscard]] Result<StoredTensor> require(std::string_view name, numerics::Dtype dtype,
                                             const tensor::Shape& shape);
  // The first of `dtypes` that the file declares.
  [[nodiscard]] Result<StoredTensor> require(std::string_view name,
                                             std::initializer_list<numerics::Dtype> dtypes,
                                             const tensor::Shape& shape);

  // Names that nobody claimed and that start with none of `skipped_prefixes`, sorted.
  std::vector<std::string> unclaimed(std::span<const std::string_view> skipped_prefixes = {}) const;
  // The same as an error that shows the first names; success if there are none.
  [[nodiscard]] Status check_all_claimed(
      std::span<const std::string_view> skipped_prefixes = {}) const;
  // One line about the unclaimed tensors of each prefix that has some:
  // "skipped: mtp.* 24 tensors, 1024 bytes; vision.* 3 tensors, 96 bytes".
  // Empty if there are none.
  std::string describe_skipped(std::span<const std::string_view> prefixes) const;

 private:
  struct Located {
    const TensorFile* file = nullptr;
    const TensorEntry* entry = nullptr;
    bool is_claimed = false;
  };

  Checkpoint(std::filesystem::path folder, ConfigFile config);
  [[nodiscard]] static Result<Checkpoint> open_gguf(const std::filesystem::path& path);
  void locate_tensors(const TensorFile& file);
  void sort_tensors();
  // Index into located_.
  std::optional<std::size_t> locate(std::string_view name) const;
  static StoredTensor as_declared(const Located& located);

  std::filesystem::path folder_;
  ConfigFile config_;
  std::filesystem::path source_;  // the index or the single file, for errors
  std::vector<SafetensorsFile> files_;
  std::vector<GgufFile> gguf_;    // one, or none
  std::vector<Located> located_;  // sorted by name; points into files_ or gguf_
};

}  // namespace locket::checkpoint
