// A model ready for requests: the engine with the weights of one folder, and its tokenizer.
#pragma once

#include <filesystem>
#include <memory>

#include "base/result.h"
#include "engine/engine.h"
#include "tokenizer/tokenizer.h"

namespace locket::service {

class LoadedModel {
 public:
  // Reads FOLDER/config.json, its safetensors files and FOLDER/tokenizer.json. Errors name the file
  // and what is wrong.
  [[nodiscard]] static Result<LoadedModel> open(const std::filesystem::path& folder,
                                                const engine::EngineOptions& options);

  const tokenizer::Tokenizer& tokenizer() const { return tokenizer_; }
  engine::Engine& engine() const { return *engine_; }

 private:
  LoadedModel(tokenizer::Tokenizer tokenizer, std::unique_ptr<engine::Engine> engine);

  tokenizer::Tokenizer tokenizer_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace locket::service
