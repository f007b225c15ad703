// Writes a safetensors file whose content need not be in memory: what the tensors will be is said
// first, then their bytes follow in order. The file appears under its name when it is complete,
// for the owner only (0600). Not thread-safe.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "base/result.h"
#include "numerics/dtype.h"
#include "tensor/shape.h"

namespace locket::checkpoint {

struct PlannedTensor {
  std::string name;
  numerics::Dtype dtype = numerics::Dtype::kU8;
  tensor::Shape shape;
};

class SafetensorsStream {
 public:
  // kBadRequest for a name that occurs twice, is reserved or is not UTF-8, and for an impossible
  // shape; kIo if the file cannot be made.
  [[nodiscard]] static Result<SafetensorsStream> create(
      const std::filesystem::path& path, std::span<const PlannedTensor> tensors,
      const std::map<std::string, std::string>& metadata);
  SafetensorsStream(SafetensorsStream&&) noexcept;
  SafetensorsStream& operator=(SafetensorsStream&&) noexcept;
  // What is not finished is removed.
  ~SafetensorsStream();

  // The next bytes of the data. REQUIRES: not more than the tensors have. kIo.
  [[nodiscard]] Status append(std::span<const std::byte> bytes);
  // Gives the file its name, in place of one that has it. REQUIRES: all bytes were appended. kIo.
  [[nodiscard]] Status finish();

 private:
  struct State;
  explicit SafetensorsStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace locket::checkpoint
