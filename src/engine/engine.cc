#include "engine/engine.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/system_memory.h"

namespace locket::engine {
namespace {

constexpr std::uint64_t kLeastPoolBytes = std::uint64_t{64} << 20;

std::uint64_t pool_budget(const EngineOptions& options) {
  if (options.pool_budget_bytes > 0) return options.pool_budget_bytes;
  return std::max(available_memory_bytes() / 4, kLeastPoolBytes);
}

std::size_t thread_count(const EngineOptions& options) {
  return options.threads > 0 ? options.threads : WorkerPool::hardware_threads();
}

}  // namespace

Engine::Engine(checkpoint::Checkpoint checkpoint, model::V41Model model,
               const EngineOptions& options)
    : checkpoint_(std::move(checkpoint)),
      model_(std::move(model)),
      pool_(model_.memory().layout.page_bytes(), pool_budget(options)),
      workers_(thread_count(options)),
      replay_(options.replay) {
  const std::vector<std::string> unknown = checkpoint_.config().root().unread_keys();
  if (!unknown.empty()) {
    notes_.push_back(
        fmt::format("config.json: unknown keys ignored: {}", fmt::join(unknown, ", ")));
  }
  if (!model_.skipped_tensors().empty()) notes_.push_back(model_.skipped_tensors());
}

Result<std::unique_ptr<Engine>> Engine::open(const std::filesystem::path& folder,
                                             std::vector<std::int32_t> token_map,
                                             const EngineOptions& options) {
  LOCKET_TRY(checkpoint::Checkpoint checkpoint, checkpoint::Checkpoint::open(folder));
  LOCKET_TRY(model::V41Model model, model::V41Model::load(checkpoint, std::move(token_map),
                                                          options.numerics, options.progress));
  return std::make_unique<Engine>(std::move(checkpoint), std::move(model), options);
}

std::size_t Engine::vocabulary_size() const {
  return static_cast<std::size_t>(model_.config().vocabulary_size);
}

std::size_t Engine::max_positions() const {
  return static_cast<std::size_t>(model_.config().max_positions);
}

TokenId Engine::eos_token() const { return static_cast<TokenId>(model_.config().eos_token_id); }

Session Engine::make_session(model::ForwardObserver* observer) {
  return {model_, pool_, workers_, {.replay = replay_, .observer = observer}};
}

}  // namespace locket::engine
