#include "model/generations/mla_bytes.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/weight_matrix.h"
#include "model/generations/mla_weights.h"
#include "tensor/aligned_buffer.h"

namespace locket::model {
namespace {

using kernels::WeightFormat;

constexpr std::string_view kHeadProjections = ".kv_b_proj.weight";

std::uint64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
}

std::uint64_t matrix_bytes(WeightFormat format, std::int64_t rows, std::int64_t columns) {
  return kernels::packed_bytes(format, static_cast<std::size_t>(rows),
                               static_cast<std::size_t>(columns));
}

// gate, up and down.
std::uint64_t ffn_bytes(const MlaModelConfig& config, WeightFormat format, std::int64_t size) {
  return 2 * matrix_bytes(format, size, config.hidden_size) +
         matrix_bytes(format, config.hidden_size, size);
}

// Keys and values of all heads are held in bfloat16 or, where that is not exact, in float32.
WeightFormat head_format(WeightFormat format) {
  return format == WeightFormat::kBf16 ? WeightFormat::kBf16 : WeightFormat::kF32;
}

std::uint64_t attention_bytes(const MlaModelConfig& config, WeightFormat format) {
  const std::int64_t query = config.head_count * (config.nope_dim + config.rope_dim);
  const std::int64_t input = config.query_rank > 0 ? config.query_rank : config.hidden_size;
  std::uint64_t bytes =
      matrix_bytes(format, query, input) +
      matrix_bytes(format, config.row_width(), config.hidden_size) +
      matrix_bytes(head_format(format), config.head_count * (config.nope_dim + config.value_dim),
                   config.latent_rank) +
      matrix_bytes(format, config.hidden_size, config.head_count * config.value_dim);
  if (config.query_rank > 0) bytes += matrix_bytes(format, config.query_rank, config.hidden_size);
  if (!config.has_indexer()) return bytes;
  return bytes + matrix_bytes(format, config.index_heads * config.index_dim, config.query_rank) +
         matrix_bytes(format, config.index_dim, config.hidden_size) +
         matrix_bytes(WeightFormat::kBf16, config.index_heads, config.hidden_size);
}

// Of one row of a step: residual, norm and update, queries in both forms with their averages and
// values, and the experts that a token goes through.
std::uint64_t work_per_row(const MlaModelConfig& config) {
  const std::int64_t head = 2 * config.row_width() + config.nope_dim + config.rope_dim +
                            config.latent_rank + config.value_dim;
  const std::int64_t index = 2 * config.index_heads * config.index_dim;
  const auto chosen = static_cast<std::int64_t>(config.router.experts_per_token);
  const std::int64_t experts =
      (chosen + config.shared_experts) * 2 * (config.hidden_size + config.expert_size);
  return sizeof(float) * (product(config.hidden_size, 4) + product(config.head_count, head) +
                          product(1, index + std::max(experts, 2 * config.ffn_size)));
}

// How many there are; the sizes are still to be filled in.
WeightBytes routed_experts(const MlaModelConfig& config) {
  const std::int64_t layers = config.layer_count - config.dense_layers;
  const auto chosen = static_cast<std::int64_t>(config.router.experts_per_token);
  return {.experts = product(layers, config.expert_count),
          .token_experts = product(layers, chosen),
          .expert_layers = product(layers, 1),
          .work_per_row = work_per_row(config)};
}

// As it lies in memory: small BF16 tensors are widened, and so may be the projections of the heads.
std::uint64_t loaded_bytes(const checkpoint::StoredTensor& tensor) {
  std::uint64_t bytes = tensor.byte_count();
  const bool is_fp8 = tensor.dtype == numerics::Dtype::kFp8E4m3;
  if (tensor.dtype == numerics::Dtype::kBf16 && tensor.shape.size() == 1) bytes *= 2;
  if (tensor.name().ends_with(kHeadProjections) && is_fp8) {
    bytes *= 4;
  } else if (is_fp8) {
    bytes += bytes / 128;  // a float32 scale a tile of 16 x 32
  }
  return tensor::AlignedBuffer::taken_bytes(static_cast<std::size_t>(bytes));
}

}  // namespace

WeightBytes estimate_mla_bytes(const MlaModelConfig& config, WeightFormat format) {
  WeightBytes bytes = routed_experts(config);
  bytes.is_estimate = true;
  const std::uint64_t table =
      matrix_bytes(WeightFormat::kBf16, config.vocabulary_size, config.hidden_size);
  const auto moe_layers = bytes.expert_layers;
  std::uint64_t layers =
      static_cast<std::uint64_t>(config.layer_count) * attention_bytes(config, format) +
      static_cast<std::uint64_t>(config.dense_layers) * ffn_bytes(config, format, config.ffn_size);
  layers +=
      moe_layers * (ffn_bytes(config, format, config.shared_experts * config.expert_size) +
                    matrix_bytes(WeightFormat::kBf16, config.expert_count, config.hidden_size));
  bytes.token_dense = layers + table;
  bytes.dense = bytes.token_dense + table;
  bytes.expert = ffn_bytes(config, format, config.expert_size);
  bytes.expert_read = bytes.expert;
  bytes.load_scratch = table;
  return bytes;
}

WeightBytes count_mla_bytes(const MlaModelConfig& config,
                            const checkpoint::Checkpoint& checkpoint) {
  WeightBytes bytes = routed_experts(config);
  const std::vector<std::string> drafts = draft_prefixes(config);
  std::uint64_t experts = 0;
  for (const checkpoint::StoredTensor& tensor : checkpoint.tensors()) {
    const std::string& name = tensor.name();
    const bool is_draft = std::ranges::any_of(
        drafts, [&](const std::string& prefix) { return name.starts_with(prefix); });
    if (is_draft) continue;
    if (is_routed_expert(name)) {
      experts += loaded_bytes(tensor);
      continue;
    }
    bytes.dense += loaded_bytes(tensor);
    bytes.load_scratch = std::max(bytes.load_scratch, tensor.byte_count());
    if (name != "model.embed_tokens.weight") bytes.token_dense += loaded_bytes(tensor);
  }
  bytes.expert = (experts + bytes.experts - 1) / bytes.experts;
  bytes.expert_read = bytes.expert;
  return bytes;
}

}  // namespace locket::model
