#include "tests/support/gguf_text.h"

namespace locket::test_support {
namespace {

constexpr std::size_t kAlignment = 32;
constexpr std::uint32_t kU32 = 4;
constexpr std::uint32_t kI32 = 5;
constexpr std::uint32_t kF32 = 6;
constexpr std::uint32_t kString = 8;
constexpr std::uint32_t kList = 9;

void pad(std::string& text) {
  text.resize((text.size() + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

std::string gguf_string(std::string_view text) {
  return gguf_bytes<std::uint64_t>(text.size()) + std::string(text);
}

void GgufText::add_raw(std::string_view key, std::uint32_t type, std::string_view content) {
  values_ += gguf_string(key) + gguf_bytes(type) + std::string(content);
  ++value_count_;
}

void GgufText::add_u32(std::string_view key, std::uint32_t value) {
  add_raw(key, kU32, gguf_bytes(value));
}

void GgufText::add_f32(std::string_view key, float value) { add_raw(key, kF32, gguf_bytes(value)); }

void GgufText::add_string(std::string_view key, std::string_view value) {
  add_raw(key, kString, gguf_string(value));
}

void GgufText::add_strings(std::string_view key, const std::vector<std::string>& values) {
  std::string list = gguf_bytes(kString) + gguf_bytes<std::uint64_t>(values.size());
  for (const std::string& value : values) list += gguf_string(value);
  add_raw(key, kList, list);
}

void GgufText::add_i32_list(std::string_view key, const std::vector<std::int32_t>& values) {
  std::string list = gguf_bytes(kI32) + gguf_bytes<std::uint64_t>(values.size());
  for (const std::int32_t value : values) list += gguf_bytes(value);
  add_raw(key, kList, list);
}

void GgufText::add_tensor(std::string_view name, const std::vector<std::uint64_t>& extents,
                          std::uint32_t type, std::string_view bytes) {
  tensors_ += gguf_string(name) + gguf_bytes(static_cast<std::uint32_t>(extents.size()));
  for (const std::uint64_t extent : extents) tensors_ += gguf_bytes(extent);
  tensors_ += gguf_bytes(type) + gguf_bytes<std::uint64_t>(data_.size());
  data_ += bytes;
  pad(data_);
  ++tensor_count_;
}

void GgufText::add_llama(const Sizes& sizes) {
  add_string("general.architecture", "llama");
  add_u32("llama.block_count", sizes.layers);
  add_u32("llama.context_length", 4096);
  add_u32("llama.embedding_length", sizes.hidden);
  add_u32("llama.feed_forward_length", sizes.ffn);
  add_u32("llama.attention.head_count", sizes.heads);
  add_u32("llama.attention.head_count_kv", sizes.kv_heads);
  add_f32("llama.attention.layer_norm_rms_epsilon", sizes.eps);
  add_f32("llama.rope.freq_base", sizes.theta);
}

std::string GgufText::text(std::uint32_t version) const {
  std::string text = "GGUF" + gguf_bytes(version) + gguf_bytes(tensor_count_) +
                     gguf_bytes(value_count_) + values_ + tensors_;
  pad(text);
  return text + data_;
}

}  // namespace locket::test_support
