#include "engine/engine.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/log.h"
#include "base/system_memory.h"
#include "engine/model_identity.h"
#include "engine/model_memory.h"

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
      tenant_(options.memory.tenant),
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
  auto engine = std::make_unique<Engine>(std::move(checkpoint), std::move(model), options);
  LOCKET_TRY_STATUS(engine->open_memory(options));
  return engine;
}

Status Engine::open_memory(const EngineOptions& options) {
  if (options.memory.keeps == MemoryOptions::Keeps::kNothing) return {};
  const model::Numerics& numerics = model_.numerics();
  cache::PrefixMemoryOptions memory;
  memory.model_label = model_label(checkpoint_.folder());
  memory.identity.numerics_mode = numerics.memory_name();
  memory.identity.numerics_revision = model::kNumericsRevision;
  memory.restart_tokens = model_.config().boundary * (model_.config().sliding_window - 1);
  // `plain` is only there to be compared with outside code: it never touches the disk.
  if (!options.memory.directory.empty() && numerics.mode != model::NumericsMode::kPlain) {
    LOCKET_TRY(memory.identity.model, model_identity(checkpoint_, workers_));
    LOCKET_TRY_STATUS(open_disk(options.memory));
    memory.disk = disk_.get();
    memory.public_tenant = kPublicTenant;
  }
  memory_ = std::make_unique<cache::PrefixMemory>(model_.memory().layout, pool_, memory);
  return {};
}

Status Engine::open_disk(const MemoryOptions& options) {
  Result<std::unique_ptr<cache::DiskStore>> disk = cache::DiskStore::open(
      {.directory = options.directory, .quota_bytes = options.disk_quota_bytes});
  if (!disk && options.if_unusable == MemoryOptions::IfUnusable::kFail) {
    return tl::make_unexpected(std::move(disk.error()));
  }
  if (!disk) {
    log_warning("nothing is remembered after the program ends: " + disk.error().message);
    return {};
  }
  disk_ = std::move(*disk);
  if (!disk_->is_writable()) {
    notes_.push_back(fmt::format("memory in {}: read, not written: {}", disk_->directory().string(),
                                 disk_->read_only_reason()));
  }
  return {};
}

std::size_t Engine::vocabulary_size() const {
  return static_cast<std::size_t>(model_.config().vocabulary_size);
}

std::size_t Engine::max_positions() const {
  return static_cast<std::size_t>(model_.config().max_positions);
}

TokenId Engine::eos_token() const { return static_cast<TokenId>(model_.config().eos_token_id); }

Session Engine::make_session(model::ForwardObserver* observer) {
  return {model_,
          pool_,
          workers_,
          {.replay = replay_,
           .memory = observer == nullptr ? memory_.get() : nullptr,
           .tenant = tenant_,
           .observer = observer}};
}

SessionOptions Engine::session_options(const std::string& tenant) {
  return {.replay = replay_, .memory = memory_.get(), .tenant = tenant};
}

}  // namespace locket::engine
