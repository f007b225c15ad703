#include "service/loaded_model.h"

#include <fmt/format.h>
#include <mutex>
#include <utility>
#include <vector>

#include "chat/markup.h"
#include "checkpoint/config_json.h"
#include "tokenizer/engram_token_map.h"

namespace locket::service {
namespace {

// Asked before the weights are read, which can take long. What config.json lacks is the engine's to
// say.
Status check_vocabulary(const std::filesystem::path& folder,
                        const tokenizer::Tokenizer& tokenizer) {
  LOCKET_TRY(const checkpoint::ConfigFile config,
             checkpoint::ConfigFile::open(folder / "config.json"));
  const auto text = config.root().object("text_config");
  if (!text) return {};
  const auto size = text->integer("vocab_size");
  if (!size || *size == static_cast<std::int64_t>(tokenizer.vocabulary_size())) return {};
  return fail(
      ErrorCode::kBadCheckpoint,
      fmt::format("{} has {} ids, text_config.vocab_size of config.json is {}; they must "
                  "be equal",
                  (folder / "tokenizer.json").string(), tokenizer.vocabulary_size(), *size));
}

}  // namespace

struct LoadedModel::Lazy {
  std::once_flag once;
  std::shared_ptr<const chat::TokenBytes> token_bytes;
};

LoadedModel::LoadedModel(tokenizer::Tokenizer tokenizer, std::unique_ptr<engine::Engine> engine)
    : tokenizer_(std::move(tokenizer)),
      engine_(std::move(engine)),
      control_tokens_{.think_close = tokenizer_.find_added_token(chat::kThinkClose).value_or(-1),
                      .dsml = tokenizer_.find_added_token(chat::kDsml).value_or(-1)},
      lazy_(std::make_unique<Lazy>()) {}

LoadedModel::LoadedModel(LoadedModel&&) noexcept = default;
LoadedModel& LoadedModel::operator=(LoadedModel&&) noexcept = default;
LoadedModel::~LoadedModel() = default;

std::shared_ptr<const chat::TokenBytes> LoadedModel::token_bytes() const {
  std::call_once(lazy_->once, [this] {
    lazy_->token_bytes = std::make_shared<const chat::TokenBytes>(tokenizer_, engine_->eos_token());
  });
  return lazy_->token_bytes;
}

Result<LoadedModel> LoadedModel::open(const std::filesystem::path& folder,
                                      const engine::EngineOptions& options) {
  LOCKET_TRY(tokenizer::Tokenizer tokenizer, tokenizer::Tokenizer::load(folder / "tokenizer.json"));
  LOCKET_TRY_STATUS(check_vocabulary(folder, tokenizer));
  LOCKET_TRY(std::vector<std::int32_t> token_map, tokenizer::make_engram_token_map(tokenizer));
  LOCKET_TRY(std::unique_ptr<engine::Engine> engine,
             engine::Engine::open(folder, std::move(token_map), options));
  return LoadedModel(std::move(tokenizer), std::move(engine));
}

}  // namespace locket::service
