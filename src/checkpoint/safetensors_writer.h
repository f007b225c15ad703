// Writes a safetensors file in one go, for traces and tests. The content is put together in memory.
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>

#include "base/result.h"
#include "tensor/tensor_view.h"

namespace locket::checkpoint {

struct NamedTensor {
  std::string name;
  tensor::TensorView view;
};

// Tensors are stored in the given order. kBadRequest for a name that occurs twice, is reserved or
// is not UTF-8, and for bytes that do not fit shape and dtype; kIo if the file cannot be written.
[[nodiscard]] Status write_safetensors(const std::filesystem::path& path,
                                       std::span<const NamedTensor> tensors,
                                       const std::map<std::string, std::string>& metadata = {});

}  // namespace locket::checkpoint
