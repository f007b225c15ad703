#include "service/loaded_model.h"

#include <fmt/format.h>
#include <utility>
#include <vector>

#include "tokenizer/engram_token_map.h"

namespace locket::service {

LoadedModel::LoadedModel(tokenizer::Tokenizer tokenizer, std::unique_ptr<engine::Engine> engine)
    : tokenizer_(std::move(tokenizer)), engine_(std::move(engine)) {}

Result<LoadedModel> LoadedModel::open(const std::filesystem::path& folder,
                                      const engine::EngineOptions& options) {
  const std::filesystem::path tokenizer_path = folder / "tokenizer.json";
  LOCKET_TRY(tokenizer::Tokenizer tokenizer, tokenizer::Tokenizer::load(tokenizer_path));
  LOCKET_TRY(std::vector<std::int32_t> token_map, tokenizer::make_engram_token_map(tokenizer));
  LOCKET_TRY(std::unique_ptr<engine::Engine> engine,
             engine::Engine::open(folder, std::move(token_map), options));
  if (tokenizer.vocabulary_size() != engine->vocabulary_size()) {
    return fail(ErrorCode::kBadCheckpoint,
                fmt::format("{} has {} ids, text_config.vocab_size of config.json is {}; they must "
                            "be equal",
                            tokenizer_path.string(), tokenizer.vocabulary_size(),
                            engine->vocabulary_size()));
  }
  return LoadedModel(std::move(tokenizer), std::move(engine));
}

}  // namespace locket::service
