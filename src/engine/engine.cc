#include "engine/engine.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "base/log.h"
#include "base/system_memory.h"
#include "engine/model_identity.h"
#include "engine/model_memory.h"
#include "model/generations/generation.h"
#include "model/streamed_experts.h"

namespace locket::engine {
namespace {

std::size_t thread_count(const EngineOptions& options) {
  return options.threads > 0 ? options.threads : WorkerPool::hardware_threads();
}

Result<WeightPlan> make_plan(const checkpoint::Checkpoint& checkpoint,
                             const model::Generation& generation, const EngineOptions& options) {
  const checkpoint::ConfigObject root = checkpoint.config().root();
  LOCKET_TRY(const model::ModelOutline outline, generation.outline(root, options.numerics.mode));
  LOCKET_TRY(const model::WeightBytes bytes, generation.count_bytes(root, &checkpoint));
  const WeightPlanWishes wishes = {.available_bytes = options.available_bytes > 0
                                                          ? options.available_bytes
                                                          : available_memory_bytes(),
                                   .expert_bytes = options.expert_budget_bytes,
                                   .pool_bytes = options.pool_budget_bytes,
                                   .head_copy = options.head_copy};
  return plan_weights(bytes, outline.memory.layout, wishes);
}

}  // namespace

Engine::Engine(checkpoint::Checkpoint checkpoint, std::unique_ptr<model::LanguageModel> model,
               const WeightPlan& plan, const EngineOptions& options)
    : checkpoint_(std::move(checkpoint)),
      plan_(plan),
      model_(std::move(model)),
      pool_(model_->layout().page_bytes(), plan.pool_bytes),
      workers_(thread_count(options)),
      tenant_(options.memory.tenant),
      replay_(options.replay) {
  const std::vector<std::string> unknown = checkpoint_.config().root().unread_keys();
  if (!unknown.empty()) {
    notes_.push_back(
        fmt::format("config.json: unknown keys ignored: {}", fmt::join(unknown, ", ")));
  }
  if (!model_->skipped_tensors().empty()) notes_.push_back(model_->skipped_tensors());
}

Engine::~Engine() {
  const model::StreamedExperts* const experts = model_->streamed_experts();
  if (experts == nullptr || uses_file_ == nullptr ||
      experts->counts().hits + experts->counts().misses == 0) {
    return;
  }
  const Status status = uses_file_->write(experts->uses());
  if (!status) log_warning("the use of experts is not remembered: " + status.error().message);
}

void Engine::warm_experts(const Sha256Digest& identity) {
  model::StreamedExperts* const experts = model_->streamed_experts();
  if (experts == nullptr || disk_ == nullptr) return;
  ExpertUsesFile file(disk_->directory(), identity);
  const model::ExpertUses sizes = experts->uses();
  Result<model::ExpertUses> earlier = file.read(sizes.layers(), sizes.experts());
  if (disk_->is_writable()) uses_file_ = std::make_unique<ExpertUsesFile>(std::move(file));
  if (earlier) {
    const std::size_t known = earlier->most_used(experts->capacity()).size();
    log_info(fmt::format("reading the {} experts that earlier runs used most", known));
    experts->warm_up(std::move(*earlier), {});
  } else if (earlier.error().code != ErrorCode::kNotFound) {
    notes_.push_back("no experts are loaded ahead: " + earlier.error().message);
  }
}

Result<std::unique_ptr<Engine>> Engine::open(const std::filesystem::path& folder,
                                             std::vector<std::int32_t> token_map,
                                             const EngineOptions& options) {
  LOCKET_TRY(checkpoint::Checkpoint checkpoint, checkpoint::Checkpoint::open(folder));
  LOCKET_TRY(const model::Generation* generation,
             model::find_generation(checkpoint.config().root()));
  LOCKET_TRY_STATUS(model::choose_mode(*generation, options.numerics.mode));
  LOCKET_TRY(const WeightPlan plan, make_plan(checkpoint, *generation, options));
  if (options.on_plan) options.on_plan(plan);
  const model::ExpertPlacement placement = {.budget_bytes = plan.streams ? plan.expert_bytes : 0};
  LOCKET_TRY(std::unique_ptr<model::LanguageModel> model,
             generation->load(checkpoint, {.numerics = options.numerics,
                                           .token_map = std::move(token_map),
                                           .progress = options.progress,
                                           .placement = placement}));
  auto engine = std::make_unique<Engine>(std::move(checkpoint), std::move(model), plan, options);
  if (plan.head_copy_bytes > 0) engine->model_->make_head_copy(engine->workers_);
  LOCKET_TRY_STATUS(engine->open_memory(options));
  return engine;
}

Status Engine::open_memory(const EngineOptions& options) {
  if (options.memory.keeps == MemoryOptions::Keeps::kNothing) return {};
  const model::Numerics& numerics = model_->numerics();
  cache::PrefixMemoryOptions memory;
  memory.model_label = model_label(checkpoint_.folder());
  memory.identity.numerics_mode = numerics.memory_name();
  memory.identity.numerics_revision = model::kNumericsRevision;
  memory.restart_tokens = model_->shape().restart_tokens();
  // `plain` is only there to be compared with outside code: it never touches the disk.
  if (!options.memory.directory.empty() && numerics.mode != model::NumericsMode::kPlain) {
    LOCKET_TRY(memory.identity.model, model_identity(checkpoint_, workers_));
    LOCKET_TRY_STATUS(open_disk(options.memory));
    warm_experts(memory.identity.model);
    memory.disk = disk_.get();
    memory.public_tenant = kPublicTenant;
  }
  memory_ = std::make_unique<cache::PrefixMemory>(model_->layout(), pool_, memory);
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
  return static_cast<std::size_t>(model_->shape().vocabulary_size);
}

std::size_t Engine::max_positions() const {
  return static_cast<std::size_t>(model_->shape().max_positions);
}

TokenId Engine::eos_token() const { return static_cast<TokenId>(model_->shape().eos_token_id); }

Session Engine::make_session(model::ForwardObserver* observer) {
  return {*model_,
          pool_,
          workers_,
          {.replay = replay_,
           .memory = observer == nullptr ? memory_.get() : nullptr,
           .tenant = tenant_,
           .slice_tokens = plan_.slice_tokens,
           .observer = observer}};
}

SessionOptions Engine::session_options(const std::string& tenant) {
  return {.replay = replay_,
          .memory = memory_.get(),
          .tenant = tenant,
          .slice_tokens = plan_.slice_tokens};
}

}  // namespace locket::engine
