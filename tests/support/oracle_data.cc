#include "tests/support/oracle_data.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <stdexcept>

#include "checkpoint/safetensors.h"
#include "numerics/bf16.h"

namespace locket::test_support {
namespace {

template <class T>
std::vector<T> read_values(const checkpoint::SafetensorsFile& file,
                           const checkpoint::TensorEntry& entry) {
  std::vector<T> values(entry.byte_count / sizeof(T));
  const Status status = file.read_into(entry, std::as_writable_bytes(std::span(values)));
  if (!status) throw std::runtime_error(status.error().message);
  return values;
}

OracleTensor read_tensor(const checkpoint::SafetensorsFile& file,
                         const checkpoint::TensorEntry& entry) {
  OracleTensor tensor = {.shape = entry.shape, .floats = {}, .integers = {}, .bytes = {}};
  if (entry.dtype == numerics::Dtype::kF32) {
    tensor.floats = read_values<float>(file, entry);
  } else if (entry.dtype == numerics::Dtype::kBf16) {
    const auto stored = read_values<numerics::Bf16>(file, entry);
    std::ranges::transform(stored, std::back_inserter(tensor.floats),
                           [](numerics::Bf16 value) { return numerics::to_float(value); });
  } else if (entry.dtype == numerics::Dtype::kI32) {
    tensor.integers = read_values<std::int32_t>(file, entry);
  } else {
    tensor.bytes = read_values<std::uint8_t>(file, entry);
  }
  return tensor;
}

template <class T>
std::span<const T> row_of(const std::vector<T>& values, const OracleTensor& tensor,
                          std::size_t row) {
  return std::span(values).subspan(row * tensor.width(), tensor.width());
}

}  // namespace

std::filesystem::path oracle_path(const std::string& name) {
  return std::filesystem::path(LOCKET_TEST_DATA) / "oracle" / name;
}

std::filesystem::path oracle_checkpoint(std::string_view shape) {
  return std::filesystem::path(LOCKET_TEST_DATA) / "checkpoints" / shape;
}

void print_figures(const std::string& line) {
  fmt::print("[figures] {}\n", line);
  std::fflush(stdout);
}

std::size_t OracleTensor::width() const {
  std::size_t width = 1;
  for (std::size_t i = 1; i < shape.size(); ++i) width *= static_cast<std::size_t>(shape[i]);
  return width;
}

OracleFile::OracleFile(const std::filesystem::path& path) : path_(path.string()) {
  const auto file = checkpoint::SafetensorsFile::open(path);
  if (!file) throw std::runtime_error(file.error().message);
  for (const checkpoint::TensorEntry& entry : file->tensors()) {
    tensors_.emplace(entry.name, read_tensor(*file, entry));
  }
}

const OracleTensor& OracleFile::at(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    throw std::runtime_error(fmt::format("{} has no tensor {}", path_, name));
  }
  return found->second;
}

tensor::FloatMatrix OracleFile::matrix(const std::string& name) const {
  const OracleTensor& tensor = at(name);
  tensor::FloatMatrix matrix(tensor.rows(), tensor.width());
  if (tensor.floats.size() != matrix.values().size()) {
    throw std::runtime_error(fmt::format("{}: {} holds no floats", path_, name));
  }
  std::ranges::copy(tensor.floats, matrix.values().begin());
  return matrix;
}

OracleTrace::OracleTrace(const OracleFile& file, std::string prompt_prefix,
                         std::vector<std::string> step_prefixes, std::size_t prompt_tokens)
    : file_(&file),
      prompt_prefix_(std::move(prompt_prefix)),
      step_prefixes_(std::move(step_prefixes)),
      prompt_tokens_(prompt_tokens) {}

OracleTrace::Place OracleTrace::find(const std::string& name, std::size_t position) const {
  const bool in_prompt = position < prompt_tokens_;
  const std::string& prefix =
      in_prompt ? prompt_prefix_ : step_prefixes_.at(position - prompt_tokens_);
  if (!file_->has(prefix + name)) return {};
  const OracleTensor& tensor = file_->at(prefix + name);
  // A step holds one position, with or without an extent of its own.
  if (!in_prompt) return {.tensor = &tensor, .row = 0, .width = tensor.rows() * tensor.width()};
  if (position >= tensor.rows()) {
    throw std::runtime_error(fmt::format("{}{} has no position {}", prefix, name, position));
  }
  return {.tensor = &tensor, .row = position, .width = tensor.width()};
}

std::span<const float> OracleTrace::floats(const std::string& name, std::size_t position) const {
  const Place place = find(name, position);
  if (place.tensor == nullptr) return {};
  return std::span(place.tensor->floats).subspan(place.row * place.width, place.width);
}

std::span<const std::int32_t> OracleTrace::integers(const std::string& name,
                                                    std::size_t position) const {
  const Place place = find(name, position);
  if (place.tensor == nullptr) return {};
  return std::span(place.tensor->integers).subspan(place.row * place.width, place.width);
}

std::span<const std::uint8_t> OracleTrace::bytes(const std::string& name,
                                                 std::size_t position) const {
  const Place place = find(name, position);
  if (place.tensor == nullptr) return {};
  return std::span(place.tensor->bytes).subspan(place.row * place.width, place.width);
}

std::vector<std::span<const float>> OracleTrace::float_rows(const std::string& name) const {
  std::vector<std::string> prefixes = {prompt_prefix_};
  prefixes.insert(prefixes.end(), step_prefixes_.begin(), step_prefixes_.end());
  std::vector<std::span<const float>> rows;
  for (const std::string& prefix : prefixes) {
    if (!file_->has(prefix + name)) continue;
    const OracleTensor& tensor = file_->at(prefix + name);
    for (std::size_t i = 0; i < tensor.rows(); ++i)
      rows.push_back(row_of(tensor.floats, tensor, i));
  }
  return rows;
}

std::vector<std::span<const std::uint8_t>> OracleTrace::byte_rows(const std::string& name) const {
  std::vector<std::string> prefixes = {prompt_prefix_};
  prefixes.insert(prefixes.end(), step_prefixes_.begin(), step_prefixes_.end());
  std::vector<std::span<const std::uint8_t>> rows;
  for (const std::string& prefix : prefixes) {
    if (!file_->has(prefix + name)) continue;
    const OracleTensor& tensor = file_->at(prefix + name);
    for (std::size_t i = 0; i < tensor.rows(); ++i) rows.push_back(row_of(tensor.bytes, tensor, i));
  }
  return rows;
}

tensor::FloatMatrix OracleTrace::matrix(const std::string& name) const {
  const std::size_t width = floats(name, 0).size();
  tensor::FloatMatrix matrix(positions(), width);
  for (std::size_t position = 0; position < positions(); ++position) {
    const auto values = floats(name, position);
    if (width == 0 || values.size() != width) {
      throw std::runtime_error(fmt::format("{}{} is not whole", prompt_prefix_, name));
    }
    std::ranges::copy(values, matrix.row(position).begin());
  }
  return matrix;
}

}  // namespace locket::test_support
