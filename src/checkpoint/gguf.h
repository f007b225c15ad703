// A GGUF file of the Llama architecture, read only, as a checkpoint: tensors under their released
// names and in the released order of rows, and a config.json that says the same as its keys. Blocks
// of quantized values are decoded to float32 as they are read, exactly as the format defines them,
// or come as codes and scales; BF16 stays as it is. Nothing in the file is trusted: it is checked
// completely when it is opened. Immutable after open(); thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "base/result.h"
#include "checkpoint/internal/gguf_header.h"
#include "checkpoint/tensor_file.h"

namespace locket::checkpoint {

// Whether `path` is a file that is called *.gguf: it stands where a checkpoint folder stands.
bool is_gguf_file(const std::filesystem::path& path);

class GgufFile final : public TensorFile {
 public:
  // kBadCheckpoint for a file that breaks the format; kUnsupported for another architecture,
  // version or number format. Both name the file and the key or tensor.
  [[nodiscard]] static Result<GgufFile> open(const std::filesystem::path& path);

  const std::filesystem::path& path() const override { return file_.path(); }
  std::span<const TensorEntry> tensors() const override { return tensors_; }
  [[nodiscard]] Status read_range(const TensorEntry& entry, std::uint64_t first_byte,
                                  std::span<std::byte> target) const override;
  unsigned code_bits(const TensorEntry& entry) const override;
  [[nodiscard]] Status read_codes(const TensorEntry& entry, std::span<std::byte> codes,
                                  std::span<float> scales) const override;

  // JSON with the keys of a released config.json.
  const std::string& config_text() const { return config_; }
  // Of everything before the tensors' data: keys, the vocabulary, shapes.
  const Sha256Digest& header_digest() const { return header_digest_; }

  // Keys of the file, as "tokenizer.ggml.tokens". kBadCheckpoint names the file and the key if it
  // is missing or of another type.
  bool has(std::string_view key) const;
  [[nodiscard]] Result<std::string> string(std::string_view key) const;
  [[nodiscard]] Result<bool> boolean(std::string_view key) const;
  [[nodiscard]] Result<std::span<const std::string>> strings(std::string_view key) const;
  [[nodiscard]] Result<std::span<const std::int64_t>> integers(std::string_view key) const;

 private:
  explicit GgufFile(File file) : file_(std::move(file)) {}

  template <class T>
  [[nodiscard]] Result<const T*> value(std::string_view key, std::string_view needed) const;
  std::size_t number_of(const TensorEntry& entry) const;
  // Reads stored rows [first, first + count) of a tensor, which lie together.
  [[nodiscard]] Status read_rows(std::size_t tensor, std::uint64_t first, std::uint64_t count,
                                 std::vector<std::byte>& stored) const;
  // Calls visit(row, its stored bytes) for rows [first, last) of the release, in order.
  template <class Visit>
  [[nodiscard]] Status visit_rows(std::size_t tensor, std::uint64_t first, std::uint64_t last,
                                  const Visit& visit) const;

  File file_;
  internal::GgufHeader header_;
  std::vector<TensorEntry> tensors_;      // as header_.tensors
  std::vector<std::uint64_t> head_rows_;  // as tensors_: rows of a head with pairs; 0: in order
  std::string config_;
  Sha256Digest header_digest_ = {};
};

}  // namespace locket::checkpoint
