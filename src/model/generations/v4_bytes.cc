#include "model/generations/v4_bytes.h"

#include <algorithm>

#include "kernels/weight_matrix.h"
#include "model/generations/v4_layout.h"
#include "model/generations/v4_weights.h"
#include "tensor/aligned_buffer.h"

namespace locket::model {
namespace {

// Of an estimate: what large pages leave unused at the ends of matrices, one part in so many.
constexpr std::uint64_t kLargePageShare = 25;

std::uint64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
}

// FP8 in tiles of 16 x 32, with a scale each.
std::uint64_t fp8_bytes(std::uint64_t values) { return values + values / 512; }

// wq_a, wq_b, wkv, wo_a, wo_b.
std::uint64_t attention_values(const V4Config& config) {
  const std::int64_t heads_width = config.head_count * config.head_dim;
  const std::int64_t joined = config.o_groups * config.o_lora_rank;
  return product(config.q_lora_rank, config.hidden_size + heads_width) +
         product(config.head_dim, config.hidden_size) +
         product(joined, heads_width / config.o_groups + config.hidden_size);
}

// Values and gates, BF16, and the gates' places, float32.
std::uint64_t compressor_bytes(const V4Config& config, const BlockCompressorConfig& compressor) {
  const auto width = static_cast<std::int64_t>(compressor.token_width());
  return 4 * product(width, config.hidden_size) +
         4 * product(width, static_cast<std::int64_t>(compressor.tokens));
}

// Everything of a layer but its routed experts and the table that chooses them.
std::uint64_t layer_bytes(const V4Config& config, std::int64_t layer) {
  const std::int64_t mixes = (2 + config.stream_count) * config.stream_count;
  const std::uint64_t sites = 2 * 4 * product(mixes, config.stream_count * config.hidden_size);
  std::uint64_t bytes = sites + fp8_bytes(attention_values(config)) +
                        fp8_bytes(3 * product(config.expert_size, config.hidden_size)) +
                        2 * product(config.expert_count, config.hidden_size);
  const V4LayerKind kind = config.kind(layer);
  if (kind != V4LayerKind::kWindow) {
    bytes += compressor_bytes(config, v4_row_compressor(config, layer));
  }
  if (kind == V4LayerKind::kChosen) {
    bytes +=
        compressor_bytes(config, v4_key_compressor(config, layer, {})) +
        fp8_bytes(product(config.index_head_count * config.index_head_dim, config.q_lora_rank)) +
        2 * product(config.index_head_count, config.hidden_size);
  }
  return bytes;
}

// Three matrices in FP4.
std::uint64_t expert_memory(const V4Config& config) {
  const auto size = static_cast<std::size_t>(config.expert_size);
  const auto hidden = static_cast<std::size_t>(config.hidden_size);
  return 2 * kernels::packed_bytes(kernels::WeightFormat::kFp4, size, hidden) +
         kernels::packed_bytes(kernels::WeightFormat::kFp4, hidden, size);
}

// Of one row of a step: streams and their copy, the input and output of the experts that a token
// goes through, queries and attention outputs, values and gates of the compressors.
std::uint64_t work_per_row(const V4Config& config) {
  const std::uint64_t streams = product(config.stream_count, config.hidden_size);
  const std::uint64_t experts =
      product(config.experts_per_token + 1, 2 * config.hidden_size + 2 * config.expert_size);
  const std::uint64_t attention = product(config.head_count, config.head_dim) * 3 +
                                  product(config.o_groups, config.o_lora_rank) +
                                  product(config.index_head_count, config.index_head_dim) * 2;
  const std::uint64_t compressors = 4 * product(2, config.head_dim + config.index_head_dim);
  return sizeof(float) * (3 * streams + experts + attention + compressors);
}

// How many there are; their sizes are still to be filled in.
WeightBytes routed_experts(const V4Config& config) {
  return {.experts = product(config.layer_count, config.expert_count),
          .token_experts = product(config.layer_count, config.experts_per_token),
          .expert_layers = static_cast<std::uint64_t>(config.layer_count),
          .can_stream = true};
}

// As it lies in memory: a scale of an FP8 weight stands once for 16 x 32 values where the file has
// one for 128 x 128, and small BF16 tensors are widened.
std::uint64_t loaded_bytes(const checkpoint::StoredTensor& tensor) {
  constexpr std::uint64_t kTilesPerScale = 32;
  std::uint64_t factor = 1;
  if (tensor.dtype == numerics::Dtype::kBf16 && tensor.shape.size() == 1) factor = 2;
  if (tensor.dtype == numerics::Dtype::kE8m0) factor = kTilesPerScale;
  const std::uint64_t bytes = tensor.dtype == numerics::Dtype::kI64
                                  ? tensor.byte_count() / 2  // ids, narrowed
                                  : tensor.byte_count() * factor;
  return tensor::AlignedBuffer::taken_bytes(static_cast<std::size_t>(bytes));
}

}  // namespace

WeightBytes estimate_v4_bytes(const V4Config& config) {
  WeightBytes bytes = routed_experts(config);
  bytes.is_estimate = true;
  const std::uint64_t table = 2 * product(config.vocabulary_size, config.hidden_size);
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
    bytes.token_dense += layer_bytes(config, layer);
  }
  bytes.token_dense += table;  // the head
  bytes.dense = bytes.token_dense + table +
                product(config.hash_layer_count, 4) *
                    product(config.vocabulary_size, config.experts_per_token);
  bytes.dense += bytes.dense / kLargePageShare;
  const std::uint64_t values = 3 * product(config.expert_size, config.hidden_size);
  bytes.expert_read = values / 2 + values / 32;
  bytes.expert = expert_memory(config);
  bytes.load_scratch = table;
  bytes.work_per_row = work_per_row(config);
  return bytes;
}

WeightBytes count_v4_bytes(const V4Config& config, const checkpoint::Checkpoint& checkpoint) {
  WeightBytes bytes = routed_experts(config);
  std::uint64_t experts = 0;
  for (const checkpoint::StoredTensor& tensor : checkpoint.tensors()) {
    const std::string& name = tensor.name();
    if (is_skipped_v4_tensor(name)) continue;
    if (is_streamed_v4_tensor(name)) {
      experts += tensor.byte_count();
      bytes.can_stream = bytes.can_stream && tensor.dtype != numerics::Dtype::kFp8E4m3;
      continue;
    }
    bytes.dense += loaded_bytes(tensor);
    bytes.load_scratch = std::max(bytes.load_scratch, tensor.byte_count());
    // Of tables of embeddings and of expert ids a token reads a row.
    const bool is_table = name == "embed.weight" || tensor.dtype == numerics::Dtype::kI64;
    if (!is_table) bytes.token_dense += tensor.byte_count();
  }
  bytes.expert_read = (experts + bytes.experts - 1) / bytes.experts;
  bytes.expert = std::max(expert_memory(config), bytes.expert_read);
  bytes.work_per_row = work_per_row(config);
  return bytes;
}

}  // namespace locket::model
