#include "service/load_tokenizer.h"

#include <string>
#include <system_error>

#include "checkpoint/gguf.h"
#include "tokenizer/gguf_tokenizer.h"

namespace locket::service {
namespace {

Result<tokenizer::Tokenizer> load_from_gguf(const std::filesystem::path& path) {
  LOCKET_TRY(const checkpoint::GgufFile file, checkpoint::GgufFile::open(path));
  constexpr const char* kPre = "tokenizer.ggml.pre";
  std::string pre;
  LOCKET_TRY(const std::string model, file.string("tokenizer.ggml.model"));
  if (file.has(kPre)) {
    LOCKET_TRY(pre, file.string(kPre));
  }
  LOCKET_TRY(const auto tokens, file.strings("tokenizer.ggml.tokens"));
  LOCKET_TRY(const auto token_types, file.integers("tokenizer.ggml.token_type"));
  LOCKET_TRY(const auto merges, file.strings("tokenizer.ggml.merges"));
  return tokenizer::make_gguf_tokenizer(
      {.model = model, .pre = pre, .tokens = tokens, .token_types = token_types, .merges = merges},
      path.string());
}

}  // namespace

Result<tokenizer::Tokenizer> load_tokenizer(const std::filesystem::path& model) {
  if (checkpoint::is_gguf_file(model)) return load_from_gguf(model);
  std::error_code ignored;
  const bool is_file = std::filesystem::is_regular_file(model, ignored);
  return tokenizer::Tokenizer::load(is_file ? model : model / "tokenizer.json");
}

}  // namespace locket::service
