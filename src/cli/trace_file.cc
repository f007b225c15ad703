#include "cli/trace_file.h"

#include <numeric>

#include "checkpoint/safetensors_writer.h"

namespace locket::cli {

void TraceFile::add(const std::string& name, numerics::Dtype dtype, const tensor::Shape& shape,
                    std::span<const std::byte> bytes) {
  tensors_[name] = {.dtype = dtype, .shape = shape, .bytes = {bytes.begin(), bytes.end()}};
}

void TraceFile::add_floats(const std::string& name, const tensor::Shape& shape,
                           std::span<const float> values) {
  add(name, numerics::Dtype::kF32, shape, std::as_bytes(values));
}

void TraceFile::add_integers(const std::string& name, const tensor::Shape& shape,
                             std::span<const std::int32_t> values) {
  add(name, numerics::Dtype::kI32, shape, std::as_bytes(values));
}

void TraceFile::add_bytes(const std::string& name, const tensor::Shape& shape,
                          std::span<const std::byte> bytes) {
  add(name, numerics::Dtype::kU8, shape, bytes);
}

void TraceFile::add_positions(std::int64_t first, std::size_t end) {
  std::vector<std::int32_t> positions(end - static_cast<std::size_t>(first));
  std::iota(positions.begin(), positions.end(), static_cast<std::int32_t>(first));
  add_integers("positions", {static_cast<std::int64_t>(positions.size())}, positions);
}

void TraceFile::add_recorded(const engine::TraceRecorder& recorder) {
  for (const auto& [name, tensor] : recorder.tensors()) {
    if (tensor.integers.empty()) {
      add_floats(name, tensor.shape, tensor.floats);
    } else {
      add_integers(name, tensor.shape, tensor.integers);
    }
  }
}

Status TraceFile::write(const std::filesystem::path& path) const {
  std::vector<checkpoint::NamedTensor> named;
  named.reserve(tensors_.size());
  for (const auto& [name, tensor] : tensors_) {
    named.push_back(
        {.name = name,
         .view = {.dtype = tensor.dtype, .shape = tensor.shape, .bytes = tensor.bytes}});
  }
  return checkpoint::write_safetensors(path, named);
}

}  // namespace locket::cli
