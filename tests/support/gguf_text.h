// GGUF files for tests, put together value by value; checks nothing, so that tests can write broken
// files, and shares no code with the program's reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace locket::test_support {

class GgufText {
 public:
  void add_u32(std::string_view key, std::uint32_t value);
  void add_f32(std::string_view key, float value);
  void add_string(std::string_view key, std::string_view value);
  void add_strings(std::string_view key, const std::vector<std::string>& values);
  void add_i32_list(std::string_view key, const std::vector<std::int32_t>& values);
  // `content` is the value as the format stores it, without its type.
  void add_raw(std::string_view key, std::uint32_t type, std::string_view content);
  // `extents` as the format has them, the number of columns first.
  void add_tensor(std::string_view name, const std::vector<std::uint64_t>& extents,
                  std::uint32_t type, std::string_view bytes);

  // The keys of a model of the Llama architecture without a vocabulary.
  struct Sizes {
    std::uint32_t layers = 1;
    std::uint32_t hidden = 8;
    std::uint32_t heads = 2;
    std::uint32_t kv_heads = 1;
    std::uint32_t ffn = 8;
    float theta = 10000;
    float eps = 1e-6f;
  };
  void add_llama(const Sizes& sizes);

  // The whole file.
  std::string text(std::uint32_t version = 3) const;

 private:
  std::uint64_t value_count_ = 0;
  std::uint64_t tensor_count_ = 0;
  std::string values_;
  std::string tensors_;
  std::string data_;
};

// A number or a string as the format stores it.
template <class T>
std::string gguf_bytes(T value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}
std::string gguf_string(std::string_view text);

}  // namespace locket::test_support
