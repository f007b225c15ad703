#include "model/generations/v41_bytes.h"

#include <algorithm>
#include <string_view>

#include "kernels/weight_matrix.h"
#include "model/embedding.h"
#include "model/engram.h"
#include "model/generations/v41_parameters.h"
#include "model/generations/v41_weights.h"
#include "tensor/aligned_buffer.h"

namespace locket::model {
namespace {

// Of an estimate: what large pages leave unused at the ends of matrices, one part in so many.
constexpr std::uint64_t kLargePageShare = 25;

std::uint64_t product(std::int64_t a, std::int64_t b) {
  return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
}

// Bytes of values in the number formats of the release, as they lie in memory.
std::uint64_t bytes_of(ModelPart part, std::uint64_t values) {
  switch (part) {
    case ModelPart::kEmbedding:
    case ModelPart::kHead:
    case ModelPart::kRouter:
    case ModelPart::kRowWriters:
      return 2 * values;  // BF16
    case ModelPart::kHyperConnections:
    case ModelPart::kNorms:
      return 4 * values;  // float32
    case ModelPart::kAttentionWeights:
    case ModelPart::kIndexer:
    case ModelPart::kSharedExpert:
    case ModelPart::kEngram:
      return values + values / 512;  // FP8 in tiles of 16 x 32
    case ModelPart::kRoutedExperts:
      return values / 2 + values / 32;  // FP4
    case ModelPart::kEngramTables:
      return values + values / 32;  // FP8 in rows
    case ModelPart::kAttention:
    case ModelPart::kIndexScan:
    case ModelPart::kCount:
      break;
  }
  return 0;
}

// Of one row of a step: streams and their copy, the input and output of the experts that a token
// goes through, queries and attention outputs, latents and Engram rows. Several of them are never
// there at the same time.
std::uint64_t work_per_row(const V41Config& config) {
  const std::uint64_t streams = product(config.stream_count, config.hidden_size);
  const std::uint64_t experts =
      product(config.experts_per_token + 1, 2 * config.hidden_size + 2 * config.expert_size);
  const std::uint64_t attention = product(config.head_count, config.head_dim) * 3 +
                                  product(config.o_groups, config.o_lora_rank) +
                                  product(config.index_head_count, config.index_head_dim) * 2;
  const std::uint64_t columns =
      product(config.engram.max_ngram_size - 1, config.engram.head_count) *
      static_cast<std::uint64_t>(config.engram_head_dim);
  const auto engram_layers = static_cast<std::uint64_t>(config.engram.layer_ids.size());
  const std::uint64_t engram = columns * (engram_layers + 1) +
                               (engram_layers > 0 ? streams + product(1, config.hidden_size) : 0);
  return sizeof(float) * (3 * streams + experts + attention + engram);
}

// Three matrices in FP4.
std::uint64_t expert_memory(const V41Config& config) {
  const auto size = static_cast<std::size_t>(config.expert_size);
  const auto hidden = static_cast<std::size_t>(config.hidden_size);
  return 2 * kernels::packed_bytes(kernels::WeightFormat::kFp4, size, hidden) +
         kernels::packed_bytes(kernels::WeightFormat::kFp4, hidden, size);
}

// How many there are; their sizes are still to be filled in.
WeightBytes routed_experts(const V41Config& config) {
  return {.experts = product(config.layer_count, config.expert_count),
          .token_experts = product(config.layer_count, config.experts_per_token),
          .expert_layers = product(config.layer_count, 1),
          .head_copy = head_copy_bytes(static_cast<std::size_t>(config.vocabulary_size),
                                       static_cast<std::size_t>(config.hidden_size)),
          .can_stream = true};
}

bool is_table(std::string_view name) { return name.find(".engram.embed.") != name.npos; }

// As it lies in memory: scales of FP8 stand once for 16 rows where the file has one for 32, and
// small BF16 tensors are widened.
std::uint64_t loaded_bytes(const checkpoint::StoredTensor& tensor) {
  const bool is_widened = tensor.dtype == numerics::Dtype::kBf16 && tensor.shape.size() == 1;
  const bool is_scale = tensor.dtype == numerics::Dtype::kE8m0;
  return tensor::AlignedBuffer::taken_bytes(
      static_cast<std::size_t>(tensor.byte_count() * (is_widened || is_scale ? 2 : 1)));
}

}  // namespace

WeightBytes estimate_v41_bytes(const V41Config& config) {
  WeightBytes bytes = routed_experts(config);
  bytes.is_estimate = true;
  for (const ParameterGroup& group : v41_parameters(config)) {
    const std::uint64_t stored = bytes_of(group.part, group.stored);
    if (group.part == ModelPart::kRoutedExperts) {
      bytes.expert_read = stored / static_cast<std::uint64_t>(config.expert_count);
    } else if (group.part == ModelPart::kEngramTables) {
      (stored > kResidentTableBytes ? bytes.engram_on_disk : bytes.engram_resident) += stored;
    } else {
      bytes.dense += stored;
      bytes.token_dense += bytes_of(group.part, group.generated);
    }
  }
  bytes.dense += bytes.dense / kLargePageShare;
  bytes.expert = expert_memory(config);
  bytes.load_scratch = product(config.vocabulary_size, config.hidden_size) * 2;
  bytes.work_per_row = work_per_row(config);
  return bytes;
}

WeightBytes count_v41_bytes(const V41Config& config, const checkpoint::Checkpoint& checkpoint) {
  const WeightBytes estimate = estimate_v41_bytes(config);
  WeightBytes bytes = routed_experts(config);
  bytes.expert = estimate.expert;
  std::uint64_t experts = 0;
  for (const checkpoint::StoredTensor& tensor : checkpoint.tensors()) {
    const std::string& name = tensor.name();
    if (is_skipped_v41_tensor(name)) continue;
    if (is_table(name)) {
      const bool is_large = tensor.byte_count() > kResidentTableBytes;
      (is_large ? bytes.engram_on_disk : bytes.engram_resident) += tensor.byte_count();
    } else if (is_streamed_v41_tensor(name)) {
      experts += tensor.byte_count();
    } else {
      bytes.dense += loaded_bytes(tensor);
      bytes.load_scratch = std::max(bytes.load_scratch, tensor.byte_count());
      if (name != "embed.weight") bytes.token_dense += tensor.byte_count();
    }
  }
  bytes.expert_read = (experts + bytes.experts - 1) / bytes.experts;
  bytes.expert = std::max(bytes.expert, bytes.expert_read);
  bytes.work_per_row = work_per_row(config);
  return bytes;
}

}  // namespace locket::model
