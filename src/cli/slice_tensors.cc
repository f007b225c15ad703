#include "cli/slice_tensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/check.h"
#include "base/hash.h"

namespace locket::cli {
namespace {

using numerics::Dtype;

constexpr std::int64_t kScaleGroup = 32;

std::int64_t groups(std::int64_t count) { return (count + kScaleGroup - 1) / kScaleGroup; }

// A word of 8 equal bytes, 4 equal half-words.
constexpr std::uint64_t repeat_byte(std::uint64_t byte) { return byte * 0x0101010101010101ULL; }
constexpr std::uint64_t repeat_half(std::uint64_t half) { return half * 0x0001000100010001ULL; }

class Planner {
 public:
  explicit Planner(const model::V41Config& config) : config_(config) {}

  std::vector<SliceTensor> outside() {
    const std::int64_t hidden = config_.hidden_size;
    add("embed.weight", Dtype::kBf16, {config_.vocabulary_size, hidden}, SliceContent::kBf16Noise);
    add("head.weight", Dtype::kBf16, {config_.vocabulary_size, hidden}, SliceContent::kBf16Noise);
    norm("norm.weight", hidden);
    return std::exchange(tensors_, {});
  }

  std::vector<SliceTensor> layer(std::int64_t number) {
    const model::LayerRole& role = config_.layers[static_cast<std::size_t>(number)];
    const std::string prefix = fmt::format("layers.{}.", number);
    norm(prefix + "attn_norm.weight", config_.hidden_size);
    norm(prefix + "ffn_norm.weight", config_.hidden_size);
    site(prefix + "hc_attn_");
    site(prefix + "hc_ffn_");
    attention(prefix + "attn.");
    if (role.selects_rows) selection(prefix + "attn.indexer.");
    if (role.writes_rows) row_writers(prefix + "attn.", role);
    experts(prefix + "ffn.");
    return std::exchange(tensors_, {});
  }

 private:
  void add(const std::string& name, Dtype dtype, tensor::Shape shape, SliceContent content) {
    tensors_.push_back(
        {.plan = {.name = name, .dtype = dtype, .shape = std::move(shape)}, .content = content});
  }
  void norm(const std::string& name, std::int64_t width) {
    add(name, Dtype::kBf16, {width}, SliceContent::kOnes);
  }
  void plain(const std::string& name, std::int64_t rows, std::int64_t columns) {
    add(name + ".weight", Dtype::kBf16, {rows, columns}, SliceContent::kBf16Noise);
  }
  void fp8(const std::string& name, std::int64_t rows, std::int64_t columns) {
    add(name + ".weight", Dtype::kFp8E4m3, {rows, columns}, SliceContent::kFp8Codes);
    add(name + ".scale", Dtype::kE8m0, {groups(rows), groups(columns)}, SliceContent::kFp8Scales);
  }
  void fp4(const std::string& name, std::int64_t rows, std::int64_t columns) {
    add(name + ".weight", Dtype::kI8, {rows, columns / 2}, SliceContent::kFp4Codes);
    add(name + ".scale", Dtype::kE8m0, {rows, groups(columns)}, SliceContent::kFp4Scales);
  }

  void site(const std::string& prefix) {
    const std::int64_t streams = config_.stream_count;
    const std::int64_t mixes = 2 * streams + streams * streams;
    add(prefix + "fn", Dtype::kF32, {mixes, streams * config_.hidden_size},
        SliceContent::kF32Noise);
    add(prefix + "base", Dtype::kF32, {mixes}, SliceContent::kMixBase);
    add(prefix + "scale", Dtype::kF32, {3}, SliceContent::kMixScale);
  }

  void attention(const std::string& prefix) {
    const std::int64_t width = config_.head_count * config_.head_dim;
    const std::int64_t low = config_.o_groups * config_.o_lora_rank;
    fp8(prefix + "wq_a", config_.q_lora_rank, config_.hidden_size);
    norm(prefix + "q_norm.weight", config_.q_lora_rank);
    fp8(prefix + "wq_b", width, config_.q_lora_rank);
    fp8(prefix + "wkv", config_.head_dim, config_.hidden_size);
    norm(prefix + "kv_norm.weight", config_.head_dim);
    add(prefix + "attn_sink", Dtype::kF32, {config_.head_count}, SliceContent::kZeros);
    fp8(prefix + "wo_a", low, width / config_.o_groups);
    fp8(prefix + "wo_b", config_.hidden_size, low);
  }

  void selection(const std::string& prefix) {
    fp8(prefix + "wq_b", config_.index_head_count * config_.index_head_dim, config_.q_lora_rank);
    plain(prefix + "weights_proj", config_.index_head_count, config_.hidden_size);
  }

  void row_writers(const std::string& prefix, const model::LayerRole& role) {
    plain(prefix + "compressor.wkv", config_.head_dim, config_.hidden_size);
    if (role.ratio > 1) plain(prefix + "compressor.wgate", config_.head_dim, config_.hidden_size);
    norm(prefix + "compressor.norm.weight", config_.head_dim);
    plain(prefix + "indexer.wk", config_.index_head_dim, config_.head_dim);
    norm(prefix + "indexer.k_norm.weight", config_.index_head_dim);
  }

  void experts(const std::string& prefix) {
    const std::int64_t hidden = config_.hidden_size;
    const std::int64_t size = config_.expert_size;
    plain(prefix + "gate", config_.expert_count, hidden);
    add(prefix + "gate.bias", Dtype::kF32, {config_.expert_count}, SliceContent::kZeros);
    for (std::int64_t expert = 0; expert < config_.expert_count; ++expert) {
      const std::string name = fmt::format("{}experts.{}.", prefix, expert);
      fp4(name + "w1", size, hidden);
      fp4(name + "w2", hidden, size);
      fp4(name + "w3", size, hidden);
    }
    fp8(prefix + "shared_experts.w1", size, hidden);
    fp8(prefix + "shared_experts.w2", hidden, size);
    fp8(prefix + "shared_experts.w3", size, hidden);
  }

  const model::V41Config& config_;
  std::vector<SliceTensor> tensors_;
};

nlohmann::ordered_json text_config(const SliceShape& shape) {
  nlohmann::ordered_json text = {{"model_type", "deepseek_v41_text"},
                                 {"vocab_size", shape.vocabulary},
                                 {"hidden_size", shape.hidden},
                                 {"num_hidden_layers", 8},
                                 {"num_attention_heads", shape.heads},
                                 {"num_key_value_heads", 1},
                                 {"head_dim", shape.head_dim},
                                 {"qk_rope_head_dim", shape.rope_dim},
                                 {"q_lora_rank", shape.q_rank},
                                 {"o_lora_rank", shape.o_rank},
                                 {"o_groups", shape.o_groups},
                                 {"hidden_act", "silu"},
                                 {"swiglu_limit", 10.0},
                                 {"rms_norm_eps", 1e-20},
                                 {"tie_word_embeddings", false},
                                 {"max_position_embeddings", 1'048'576},
                                 {"sliding_window", 128},
                                 {"rope_theta", 10000},
                                 {"compress_rope_theta", 160000},
                                 {"rope_scaling",
                                  {{"rope_type", "yarn"},
                                   {"factor", 16},
                                   {"beta_fast", 32},
                                   {"beta_slow", 1},
                                   {"original_max_position_embeddings", 65536}}}};
  text.update(nlohmann::ordered_json{{"n_routed_experts", shape.experts},
                                     {"n_shared_experts", 1},
                                     {"num_experts_per_tok", shape.experts_per_token},
                                     {"moe_intermediate_size", shape.expert_size},
                                     {"scoring_func", "sqrtsoftplus"},
                                     {"topk_method", "noaux_tc"},
                                     {"norm_topk_prob", true},
                                     {"routed_scaling_factor", 1.5},
                                     {"index_n_heads", shape.index_heads},
                                     {"index_head_dim", shape.index_dim},
                                     {"index_topk", shape.index_topk},
                                     {"candidate_source_layer_id", 4},
                                     {"candidate_topk_blocks", shape.pool_blocks},
                                     {"candidate_block_size", 8},
                                     {"compress_ratios", {0, 2, 2, 2, 1, 1, 1, 1}},
                                     {"kv_source_layer_ids", {1, 4}},
                                     {"index_source_layer_ids", {1, 4, 6}},
                                     {"hc_mult", 4},
                                     {"hc_sinkhorn_iters", 20},
                                     {"hc_eps", 1e-6},
                                     {"engram_layer_ids", nlohmann::ordered_json::array()},
                                     {"engram_num_embeddings", nlohmann::ordered_json::array()},
                                     {"engram_max_ngram_size", 0},
                                     {"engram_vocab_size", 0},
                                     {"engram_n_heads", 0},
                                     {"engram_head_dim", 0},
                                     {"engram_pad_token_id", 2},
                                     {"engram_compressed_vocab_size", 0},
                                     {"num_nextn_predict_layers", 0}});
  return text;
}

std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9ULL;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EBULL;
  return value ^ (value >> 31);
}

// Two floats: signs and fractions of `word`, magnitude 2^-7 to 2^-6.
std::uint64_t float_noise(std::uint64_t word) {
  constexpr std::uint64_t kKept = 0x807FFFFF807FFFFFULL;
  constexpr std::uint64_t kExponents = 0x3C0000003C000000ULL;
  return (word & kKept) | kExponents;
}

std::uint64_t two_floats(float low, float high) {
  return std::bit_cast<std::uint32_t>(low) |
         static_cast<std::uint64_t>(std::bit_cast<std::uint32_t>(high)) << 32;
}

// Coefficients before their nonlinearities: small ones for what goes in and out, a diagonal for
// streams on themselves.
float mix_base(std::uint64_t index) {
  constexpr std::uint64_t kStreams = 4;
  if (index < 2 * kStreams) return 0.0f;
  const std::uint64_t in_matrix = index - 2 * kStreams;
  return in_matrix % (kStreams + 1) == 0 ? 3.0f : 0.0f;
}

}  // namespace

std::string slice_config_text(const SliceShape& shape) {
  const nlohmann::ordered_json config = {{"architectures", {"DeepseekV41ForCausalLM"}},
                                         {"model_type", "deepseek_v41"},
                                         {"bos_token_id", 0},
                                         {"eos_token_id", 1},
                                         {"pad_token_id", 2},
                                         {"quantization_config",
                                          {{"quant_method", "fp8"},
                                           {"activation_scheme", "dynamic"},
                                           {"weight_block_size", {32, 32}},
                                           {"scale_fmt", "ue8m0"},
                                           {"expert_dtype", "fp4"}}},
                                         {"text_config", text_config(shape)}};
  return config.dump(1) + "\n";
}

std::uint64_t SliceFile::data_bytes() const {
  std::uint64_t bytes = 0;
  for (const SliceTensor& tensor : tensors) {
    std::uint64_t bits = numerics::bits_of(tensor.plan.dtype);
    for (const std::int64_t size : tensor.plan.shape) bits *= static_cast<std::uint64_t>(size);
    bytes += bits / 8;
  }
  return bytes;
}

std::vector<SliceFile> slice_files(const model::V41Config& config) {
  const std::int64_t count = config.layer_count + 1;
  Planner planner(config);
  std::vector<SliceFile> files;
  for (std::int64_t number = 1; number <= count; ++number) {
    files.push_back({.name = fmt::format("model-{:05}-of-{:05}.safetensors", number, count),
                     .tensors = number == 1 ? planner.outside() : planner.layer(number - 2)});
  }
  return files;
}

SliceNoise::SliceNoise(std::uint64_t seed, const SliceTensor& tensor)
    : content_(tensor.content),
      state_(seed ^ xxh3_128(std::as_bytes(std::span(tensor.plan.name))).low) {}

// SplitMix64, cut to the content.
std::uint64_t SliceNoise::next_word() {
  state_ += 0x9E3779B97F4A7C15ULL;
  const std::uint64_t word = mix(state_);
  const std::uint64_t at = position_;
  position_ += 2;
  switch (content_) {
    case SliceContent::kOnes:
      return repeat_half(0x3F80);
    case SliceContent::kZeros:
      return 0;
    case SliceContent::kBf16Noise:
      return (word & repeat_half(0x807F)) | repeat_half(0x3C00);
    case SliceContent::kF32Noise:
      return float_noise(word);
    case SliceContent::kMixBase:
      return two_floats(mix_base(at), mix_base(at + 1));
    case SliceContent::kMixScale:
      return two_floats(0.1f, 0.1f);
    case SliceContent::kFp8Codes:
      return (word & repeat_byte(0x9F)) | repeat_byte(0x20);
    case SliceContent::kFp4Codes:
      return word;
    case SliceContent::kFp8Scales:
      return (word & repeat_byte(3)) + repeat_byte(119);
    case SliceContent::kFp4Scales:
      return (word & repeat_byte(3)) + repeat_byte(120);
    case SliceContent::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

void SliceNoise::fill(std::span<std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = next_word();
    std::memcpy(bytes.data() + at, &word, std::min(sizeof word, bytes.size() - at));
  }
}

}  // namespace locket::cli
