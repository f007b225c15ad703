// A model ready for requests: the engine with the weights of one folder, and its tokenizer.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "chat/chat_format.h"
#include "chat/output_constraint.h"
#include "engine/engine.h"
#include "service/model_text.h"
#include "tokenizer/tokenizer.h"

namespace locket::service {

// Ids of the tokens that divide a reply; -1 if the tokenizer lacks one.
struct ControlTokens {
  tokenizer::TokenId think_close = -1;
  tokenizer::TokenId dsml = -1;
};

class LoadedModel {
 public:
  // Reads FOLDER/config.json, its safetensors files and FOLDER/tokenizer.json, or a GGUF file in
  // place of the folder. Errors name the file and what is wrong.
  [[nodiscard]] static Result<LoadedModel> open(const std::filesystem::path& folder,
                                                const engine::EngineOptions& options);
  LoadedModel(LoadedModel&&) noexcept;
  LoadedModel& operator=(LoadedModel&&) noexcept;
  ~LoadedModel();

  const tokenizer::Tokenizer& tokenizer() const { return tokenizer_; }
  // Of its prompts and its answers.
  chat::ChatFormat chat_format() const { return chat_format_; }
  engine::Engine& engine() const { return *engine_; }
  const ControlTokens& control_tokens() const { return control_tokens_; }
  // Made at the first call, which takes a moment; thread-safe.
  std::shared_ptr<const chat::TokenBytes> token_bytes() const;

 private:
  LoadedModel(ModelText text, std::unique_ptr<engine::Engine> engine);

  struct Lazy;

  tokenizer::Tokenizer tokenizer_;
  chat::ChatFormat chat_format_;
  std::unique_ptr<engine::Engine> engine_;
  ControlTokens control_tokens_;
  std::unique_ptr<Lazy> lazy_;
};

}  // namespace locket::service
