#include "tests/support/wide_experts.h"

#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/file.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/safetensors_stream.h"
#include "tests/support/tiny_models.h"

namespace locket::test_support {
namespace {

using checkpoint::PlannedTensor;
using checkpoint::StoredTensor;

constexpr std::int64_t kOldWidth = 64;
constexpr std::int64_t kNewWidth = 6144;
constexpr std::int64_t kHidden = 128;

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message);
  return std::move(*result);
}

void check(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

bool is_expert(const std::string& name) {
  return name.find(".experts.") != name.npos || name.find(".shared_experts.") != name.npos;
}

// The shape with the other width: w1 and w3 have it in front, w2 behind, where packed FP4 has two
// values a byte and scales one for 32.
tensor::Shape widened(const std::string& name, tensor::Shape shape) {
  const std::size_t at = name.find(".w2.") == name.npos ? 0 : 1;
  shape[at] = shape[at] * kNewWidth / kOldWidth;
  return shape;
}

std::vector<std::byte> random_content(const PlannedTensor& tensor, std::mt19937& random) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.shape[0] * tensor.shape[1]));
  const bool is_scale = tensor.dtype == numerics::Dtype::kE8m0;
  for (std::byte& byte : bytes) {
    // Scales of 2^-12 to 2^-9; E4M3 codes without NaN.
    const auto draw = static_cast<std::uint32_t>(random());
    byte = static_cast<std::byte>(is_scale ? 115 + draw % 4 : draw & 0xF7u);
  }
  return bytes;
}

}  // namespace

void write_wide_experts(const std::filesystem::path& folder) {
  const std::filesystem::path source = tiny_checkpoint("micro");
  std::string config = value_of(read_whole_file(source / "config.json"));
  const std::string old_width = "\"moe_intermediate_size\": 64";
  config.replace(config.find(old_width), old_width.size(), "\"moe_intermediate_size\": 6144");
  check(write_whole_file(folder / "config.json", std::as_bytes(std::span(config))));
  std::filesystem::copy(source / "tokenizer.json", folder / "tokenizer.json");

  const auto from = value_of(checkpoint::Checkpoint::open(source));
  std::vector<StoredTensor> tensors;
  std::vector<PlannedTensor> planned;
  for (const StoredTensor& tensor : from.tensors()) {
    if (tensor.name().starts_with("mtp.")) continue;
    tensors.push_back(tensor);
    planned.push_back(
        {tensor.name(), tensor.dtype,
         is_expert(tensor.name()) ? widened(tensor.name(), tensor.shape) : tensor.shape});
  }
  std::mt19937 random(17);
  auto stream =
      value_of(checkpoint::SafetensorsStream::create(folder / "model.safetensors", planned, {}));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (is_expert(tensors[i].name())) {
      check(stream.append(random_content(planned[i], random)));
    } else {
      const auto bytes = value_of(tensors[i].read());
      check(stream.append(bytes.bytes()));
    }
  }
  check(stream.finish());
  static_assert(kHidden * kNewWidth * 3 * 17 / 32 == kWideExpertBytes);
}

}  // namespace locket::test_support
