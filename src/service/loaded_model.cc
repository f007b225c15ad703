#include "service/loaded_model.h"

#include <mutex>
#include <utility>
#include <vector>

#include "chat/markup.h"
#include "tokenizer/engram_token_map.h"

namespace locket::service {
struct LoadedModel::Lazy {
  std::once_flag once;
  std::shared_ptr<const chat::TokenBytes> token_bytes;
};

LoadedModel::LoadedModel(ModelText text, std::unique_ptr<engine::Engine> engine)
    : tokenizer_(std::move(text.tokenizer)),
      chat_format_(text.format),
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
  LOCKET_TRY(ModelText text, read_model_text(folder));
  // Only V4.1 has Engram tables.
  std::vector<std::int32_t> token_map;
  if (text.format == chat::ChatFormat::kV41) {
    LOCKET_TRY(token_map, tokenizer::make_engram_token_map(text.tokenizer));
  }
  LOCKET_TRY(std::unique_ptr<engine::Engine> engine,
             engine::Engine::open(folder, std::move(token_map), options));
  return LoadedModel(std::move(text), std::move(engine));
}

}  // namespace locket::service
