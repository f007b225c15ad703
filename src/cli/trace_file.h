// The tensors of one trace, owned until they are written as safetensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "engine/trace_recorder.h"
#include "numerics/dtype.h"
#include "tensor/shape.h"

namespace locket::cli {

class TraceFile {
 public:
  void add_floats(const std::string& name, const tensor::Shape& shape,
                  std::span<const float> values);
  void add_integers(const std::string& name, const tensor::Shape& shape,
                    std::span<const std::int32_t> values);
  void add_bytes(const std::string& name, const tensor::Shape& shape,
                 std::span<const std::byte> bytes);
  // "positions": first .. end - 1, the positions of logits and of decoder layers.
  void add_positions(std::int64_t first, std::size_t end);
  void add_recorded(const engine::TraceRecorder& recorder);

  std::size_t size() const { return tensors_.size(); }
  [[nodiscard]] Status write(const std::filesystem::path& path) const;

 private:
  struct Tensor {
    numerics::Dtype dtype = numerics::Dtype::kF32;
    tensor::Shape shape;
    std::vector<std::byte> bytes;
  };
  void add(const std::string& name, numerics::Dtype dtype, const tensor::Shape& shape,
           std::span<const std::byte> bytes);

  std::map<std::string, Tensor> tensors_;
};

}  // namespace locket::cli
