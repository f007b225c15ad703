// V1 as one of the generations.
#include <algorithm>
#include <array>
#include <utility>

#include "kernels/weight_matrix.h"
#include "model/generations/all_generations.h"
#include "model/generations/v1.h"
#include "model/stored_weight.h"
#include "tensor/aligned_buffer.h"

namespace locket::model {
namespace {

constexpr std::string_view kEmbedding = "model.embed_tokens.weight";

std::uint64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
}

// Of one row of a step: the residual, its norm and a copy, queries, keys, values and the
// attention's output, the gated values.
std::uint64_t work_per_row(const V1Config& config) {
  const std::uint64_t heads = product(config.head_count, config.head_dim);
  const std::uint64_t rows = product(config.kv_head_count, config.head_dim);
  return sizeof(float) *
         (product(3, config.hidden_size) + 2 * heads + 2 * rows + product(2, config.ffn_size));
}

// In the number format of the release, BF16.
WeightBytes estimate(const V1Config& config) {
  const std::uint64_t embedding = product(config.vocabulary_size, config.hidden_size);
  const std::uint64_t heads = product(config.head_count, config.head_dim);
  const std::uint64_t rows = product(config.kv_head_count, config.head_dim);
  const auto hidden = static_cast<std::uint64_t>(config.hidden_size);
  const std::uint64_t layer =
      2 * hidden * (heads + rows) + 3 * product(config.ffn_size, 1) * hidden;
  const std::uint64_t used = layer * static_cast<std::uint64_t>(config.layer_count) + embedding;
  return {.is_estimate = true,
          .dense = 2 * (used + (config.ties_embeddings ? 0 : embedding)),
          .load_scratch = 2 * embedding,
          .token_dense = 2 * used,
          .work_per_row = work_per_row(config)};
}

struct TensorBytes {
  std::uint64_t in_memory = 0;
  std::uint64_t as_read = 0;  // values and scales, before they are packed
};

TensorBytes bytes_of(const checkpoint::StoredTensor& tensor) {
  if (tensor.shape.size() < 2) {
    const std::uint64_t bytes = tensor.byte_count();
    return {tensor::AlignedBuffer::taken_bytes(static_cast<std::size_t>(bytes)), bytes};
  }
  const auto rows = static_cast<std::size_t>(tensor.shape[0]);
  const auto columns = static_cast<std::size_t>(tensor.shape[1]);
  const kernels::WeightFormat format = plain_format(tensor);
  return {kernels::packed_bytes(format, rows, columns),
          rows * kernels::stored_row_bytes(format, columns) +
              kernels::stored_scale_bytes(format, rows, columns)};
}

WeightBytes count(const V1Config& config, const checkpoint::Checkpoint& checkpoint) {
  WeightBytes bytes = {.work_per_row = work_per_row(config)};
  for (const checkpoint::StoredTensor& tensor : checkpoint.tensors()) {
    const TensorBytes tensor_bytes = bytes_of(tensor);
    bytes.dense += tensor_bytes.in_memory;
    bytes.load_scratch = std::max(bytes.load_scratch, tensor_bytes.as_read);
    if (config.ties_embeddings || tensor.name() != kEmbedding) {
      bytes.token_dense += tensor_bytes.as_read;
    }
  }
  return bytes;
}

Result<ModelOutline> outline(const checkpoint::ConfigObject& root, NumericsMode mode) {
  LOCKET_TRY(const V1Config config, read_v1_config(root));
  return outline_v1(config, mode);
}

Result<WeightBytes> count_bytes(const checkpoint::ConfigObject& root,
                                const checkpoint::Checkpoint* checkpoint) {
  LOCKET_TRY(const V1Config config, read_v1_config(root));
  return checkpoint == nullptr ? estimate(config) : count(config, *checkpoint);
}

Result<std::unique_ptr<LanguageModel>> load(checkpoint::Checkpoint& checkpoint,
                                            const LoadOptions& options) {
  LOCKET_TRY(V1Model model, V1Model::load(checkpoint, options));
  return std::make_unique<V1Model>(std::move(model));
}

Result<std::string> check(checkpoint::Checkpoint& checkpoint) {
  LOCKET_TRY(const V1Config config, read_v1_config(checkpoint.config().root()));
  WeightReader reader(checkpoint, {}, WeightReader::Reads::kNothing);
  LOCKET_TRY_STATUS(load_v1_weights(config, reader));
  return std::string();
}

bool is_sampled(std::string_view /*tensor*/) { return false; }

}  // namespace

Generation v1_generation() {
  static constexpr std::array kModes = {NumericsMode::kWide, NumericsMode::kPlain};
  return {.name = "V1",
          .model_type = "llama",
          .modes = kModes,
          .outline = outline,
          .count_bytes = count_bytes,
          .load = load,
          .check = check,
          .is_sampled = is_sampled};
}

}  // namespace locket::model
