#include "checkpoint/internal/gguf_llama.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <utility>

#include "checkpoint/internal/gguf_stream.h"

namespace locket::checkpoint::internal {
namespace {

using Names = std::pair<std::string_view, std::string_view>;

constexpr std::array<Names, 3> kModelNames = {{{"token_embd.weight", "model.embed_tokens.weight"},
                                               {"output_norm.weight", "model.norm.weight"},
                                               {"output.weight", "lm_head.weight"}}};
constexpr std::array<Names, 9> kLayerNames = {
    {{"attn_norm.weight", "input_layernorm.weight"},
     {"ffn_norm.weight", "post_attention_layernorm.weight"},
     {"attn_q.weight", "self_attn.q_proj.weight"},
     {"attn_k.weight", "self_attn.k_proj.weight"},
     {"attn_v.weight", "self_attn.v_proj.weight"},
     {"attn_output.weight", "self_attn.o_proj.weight"},
     {"ffn_gate.weight", "mlp.gate_proj.weight"},
     {"ffn_up.weight", "mlp.up_proj.weight"},
     {"ffn_down.weight", "mlp.down_proj.weight"}}};
constexpr std::string_view kLayerStart = "blk.";
constexpr std::int64_t kMostSize = std::int64_t{1} << 31;
constexpr double kFirstTheta = 10000;  // where the file names none

template <std::size_t kCount>
std::optional<std::string_view> find(const std::array<Names, kCount>& names,
                                     std::string_view name) {
  const auto found = std::ranges::find(names, name, &Names::first);
  if (found == names.end()) return std::nullopt;
  return found->second;
}

// "3.attn_q.weight" -> {"3", "attn_q.weight"}
std::optional<Names> layer_and_rest(std::string_view name) {
  if (!name.starts_with(kLayerStart)) return std::nullopt;
  name.remove_prefix(kLayerStart.size());
  const std::size_t digits = name.find_first_not_of("0123456789");
  if (digits == 0 || digits == name.npos || name[digits] != '.') return std::nullopt;
  return Names(name.substr(0, digits), name.substr(digits + 1));
}

class ConfigReader {
 public:
  ConfigReader(const GgufHeader& header, const std::string& file_name)
      : header_(header), file_name_(file_name) {}

  Result<GgufLlama> read() {
    LOCKET_TRY_STATUS(check_architecture());
    LOCKET_TRY(const std::int64_t hidden, integer("llama.embedding_length"));
    LOCKET_TRY(const std::int64_t heads, integer("llama.attention.head_count"));
    LOCKET_TRY(const std::int64_t kv_heads, integer_or("llama.attention.head_count_kv", heads));
    LOCKET_TRY(const std::int64_t head_dim,
               integer_or("llama.attention.key_length", std::max<std::int64_t>(1, hidden / heads)));
    LOCKET_TRY_STATUS(check_head(head_dim));
    LOCKET_TRY(const std::int64_t layers, integer("llama.block_count"));
    LOCKET_TRY(const std::int64_t ffn, integer("llama.feed_forward_length"));
    LOCKET_TRY(const std::int64_t context, integer("llama.context_length"));
    LOCKET_TRY(const double eps, number("llama.attention.layer_norm_rms_epsilon", std::nullopt));
    LOCKET_TRY(const double theta, number("llama.rope.freq_base", kFirstTheta));
    LOCKET_TRY(const std::int64_t vocabulary, vocabulary_size());
    LOCKET_TRY(const std::string bos, token_id("tokenizer.ggml.bos_token_id"));
    LOCKET_TRY(const std::string eos, token_id("tokenizer.ggml.eos_token_id"));
    return GgufLlama{
        .config = fmt::format(
            R"({{"model_type": "llama", "hidden_act": "silu", "vocab_size": {}, "hidden_size": {}, )"
            R"("num_hidden_layers": {}, "num_attention_heads": {}, "num_key_value_heads": {}, )"
            R"("head_dim": {}, "intermediate_size": {}, "max_position_embeddings": {}, )"
            R"("rms_norm_eps": {}, "rope_theta": {}, "tie_word_embeddings": {}, )"
            R"("bos_token_id": {}, "eos_token_id": {}}})",
            vocabulary, hidden, layers, heads, kv_heads, head_dim, ffn, context, eps, theta,
            !has_tensor("output.weight"), bos, eos),
        .head_dim = static_cast<std::uint64_t>(head_dim)};
  }

 private:
  tl::unexpected<Error> refuse(ErrorCode code, std::string_view key, std::string_view found,
                               std::string_view needed) const {
    return fail(code, fmt::format("{}: {} is {} ({} is needed)", file_name_, key, found, needed));
  }

  const GgufValue* find_value(std::string_view key) const {
    const auto found = header_.values.find(std::string(key));
    return found == header_.values.end() ? nullptr : &found->second;
  }

  const GgufTensor* find_tensor(std::string_view name) const {
    const auto found = std::ranges::find(header_.tensors, name, &GgufTensor::name);
    return found == header_.tensors.end() ? nullptr : &*found;
  }
  bool has_tensor(std::string_view name) const { return find_tensor(name) != nullptr; }

  Result<std::int64_t> integer(std::string_view key) const {
    const GgufValue* const value = find_value(key);
    const auto* const found = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
    if (found != nullptr && *found >= 1 && *found < kMostSize) return *found;
    return refuse(ErrorCode::kBadCheckpoint, key,
                  value == nullptr   ? "missing"
                  : found == nullptr ? "no integer"
                                     : std::to_string(*found),
                  fmt::format("an integer from 1 to {}", kMostSize - 1));
  }
  Result<std::int64_t> integer_or(std::string_view key, std::int64_t otherwise) const {
    if (find_value(key) == nullptr) return otherwise;
    return integer(key);
  }

  Result<double> number(std::string_view key, std::optional<double> otherwise) const {
    const GgufValue* const value = find_value(key);
    if (value == nullptr && otherwise) return *otherwise;
    const auto* const found = value == nullptr ? nullptr : std::get_if<double>(value);
    // Also refuses NaN.
    if (found != nullptr && *found > 0 && *found < 1e30) return *found;
    return refuse(ErrorCode::kBadCheckpoint, key,
                  value == nullptr   ? "missing"
                  : found == nullptr ? "no number"
                                     : fmt::to_string(*found),
                  "a number above 0");
  }

  // JSON: the id, or null.
  Result<std::string> token_id(std::string_view key) const {
    if (find_value(key) == nullptr) return std::string("null");
    const auto* const found = std::get_if<std::int64_t>(find_value(key));
    if (found != nullptr && *found >= 0 && *found < kMostSize) return std::to_string(*found);
    return refuse(ErrorCode::kBadCheckpoint, key, "no token id", "an integer from 0 on");
  }

  Status check_architecture() const {
    const GgufValue* const value = find_value("general.architecture");
    const auto* const name = value == nullptr ? nullptr : std::get_if<std::string>(value);
    if (name == nullptr || *name != "llama") {
      return refuse(ErrorCode::kUnsupported, "general.architecture",
                    name == nullptr ? "missing" : shown_ascii(*name), "llama");
    }
    LOCKET_TRY_STATUS(require_absent_or("llama.expert_count", 0));
    LOCKET_TRY_STATUS(require_absent_or("split.count", 1));
    return check_rotations();
  }

  // Integers that may be missing and must have one value.
  Status require_absent_or(std::string_view key, std::int64_t only) const {
    const GgufValue* const value = find_value(key);
    if (value == nullptr) return {};
    const auto* const found = std::get_if<std::int64_t>(value);
    // Parts of a split file say 0 where there is one.
    if (found != nullptr && (*found == only || *found == 0)) return {};
    return refuse(ErrorCode::kUnsupported, key,
                  found == nullptr ? "no integer" : std::to_string(*found), std::to_string(only));
  }

  Status check_rotations() const {
    if (const GgufValue* const value = find_value("llama.rope.scaling.type")) {
      const auto* const type = std::get_if<std::string>(value);
      if (type == nullptr || *type != "none") {
        return refuse(ErrorCode::kUnsupported, "llama.rope.scaling.type",
                      type == nullptr ? "no string" : shown_ascii(*type), "none");
      }
    }
    for (const std::string_view key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
      const GgufValue* const value = find_value(key);
      const auto* const factor = value == nullptr ? nullptr : std::get_if<double>(value);
      if (factor != nullptr && *factor != 1 && *factor != 0) {
        return refuse(ErrorCode::kUnsupported, key, fmt::to_string(*factor), "1");
      }
    }
    return {};
  }

  Status check_head(std::int64_t head_dim) const {
    for (const std::string_view key :
         {"llama.rope.dimension_count", "llama.attention.value_length"}) {
      LOCKET_TRY(const std::int64_t size, integer_or(key, head_dim));
      if (size == head_dim) continue;
      return refuse(ErrorCode::kUnsupported, key, std::to_string(size),
                    fmt::format("the size of a head, {},", head_dim));
    }
    return {};
  }

  Result<std::int64_t> vocabulary_size() const {
    const GgufTensor* const table = find_tensor("token_embd.weight");
    if (table == nullptr || table->rank != 2) {
      return fail(ErrorCode::kBadCheckpoint,
                  fmt::format("{}: tensor token_embd.weight is missing or no matrix", file_name_));
    }
    return static_cast<std::int64_t>(table->rows);
  }

  const GgufHeader& header_;
  const std::string& file_name_;
};

}  // namespace

Result<GgufLlama> read_gguf_llama(const GgufHeader& header, const std::string& file_name) {
  return ConfigReader(header, file_name).read();
}

std::string released_name(std::string_view name) {
  if (const auto known = find(kModelNames, name)) return std::string(*known);
  const std::optional<Names> parts = layer_and_rest(name);
  if (!parts) return std::string(name);
  const auto known = find(kLayerNames, parts->second);
  if (!known) return std::string(name);
  return fmt::format("model.layers.{}.{}", parts->first, *known);
}

bool has_paired_rows(std::string_view name) {
  const std::optional<Names> parts = layer_and_rest(name);
  return parts && (parts->second == "attn_q.weight" || parts->second == "attn_k.weight");
}

}  // namespace locket::checkpoint::internal
