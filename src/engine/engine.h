// The engine: one loaded checkpoint with its threads and its page pool; sessions are made from it.
// Immutable after open() but for the pool, so it may be shared; one session may run at a time,
// since the worker pool takes one caller. Not movable: sessions refer to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/worker_pool.h"
#include "cache/disk_store.h"
#include "cache/page_pool.h"
#include "cache/prefix_memory.h"
#include "checkpoint/checkpoint.h"
#include "engine/expert_uses_file.h"
#include "engine/replay.h"
#include "engine/session.h"
#include "engine/weight_plan.h"
#include "model/generations/weight_reader.h"
#include "model/language_model.h"

namespace locket::engine {

// What is remembered between requests, and where.
struct MemoryOptions {
  enum class Keeps { kNothing, kPrefixes } keeps = Keeps::kPrefixes;
  std::filesystem::path directory = {};  // on disk; empty: only as long as the engine lives
  // What open() does without a usable directory; going on leaves a warning in the log.
  enum class IfUnusable { kFail, kGoOnWithout } if_unusable = IfUnusable::kFail;
  std::uint64_t disk_quota_bytes = 0;  // of the whole directory; 0: no limit
  std::string tenant = {};             // whose memory sessions use that do not say otherwise
};

struct EngineOptions {
  model::Numerics numerics = {};
  ReplayMode replay = ReplayMode::kBounded;
  std::size_t threads = 0;              // 0: one per core
  std::uint64_t pool_budget_bytes = 0;  // 0: the plan says
  // Of routed experts held in memory. 0: all if they fit, else as many as do.
  std::uint64_t expert_budget_bytes = 0;
  std::uint64_t available_bytes = 0;  // memory that may be taken; 0: as the machine has
  HeadCopy head_copy = HeadCopy::kWherePays;
  MemoryOptions memory = {};
  model::LoadProgress progress = {};  // may be empty
  // Told what goes where before anything is loaded; may be empty.
  std::function<void(const WeightPlan&)> on_plan = {};
};

class Engine {
 public:
  // Reads FOLDER/config.json and its safetensors files. `token_map`: Engram class of every token
  // id. Errors name the file, the tensor or key, what was found and what is wanted; kOverBudget if
  // the weights do not fit; kBadMemory and kIo if the memory's directory cannot be used.
  [[nodiscard]] static Result<std::unique_ptr<Engine>> open(const std::filesystem::path& folder,
                                                            std::vector<std::int32_t> token_map,
                                                            const EngineOptions& options);

  // Puts together what open() has read; there is no memory yet.
  Engine(checkpoint::Checkpoint checkpoint, std::unique_ptr<model::LanguageModel> model,
         const WeightPlan& plan, const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;
  // Which experts were used is kept for the next start.
  ~Engine();

  const model::LanguageModel& model() const { return *model_; }
  const checkpoint::Checkpoint& checkpoint() const { return checkpoint_; }
  cache::PagePool& pool() { return pool_; }
  // Null: nothing is kept between sessions.
  cache::PrefixMemory* memory() { return memory_.get(); }
  WorkerPool& workers() { return workers_; }
  ReplayMode replay() const { return replay_; }
  const WeightPlan& plan() const { return plan_; }

  std::size_t vocabulary_size() const;
  // Tokens that a sequence may have (max_position_embeddings).
  std::size_t max_positions() const;
  TokenId eos_token() const;

  // A session with the engine's replay mode and memory. `observer` may be null; with one the whole
  // prompt is computed, so that it sees everything.
  Session make_session(model::ForwardObserver* observer = nullptr);
  // What a session over the memory of `tenant` is made with.
  SessionOptions session_options(const std::string& tenant);
  // Whose memory sessions use that do not say otherwise.
  const std::string& tenant() const { return tenant_; }

  // Lines for the user: unknown config keys, tensors left unread. May be empty.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  [[nodiscard]] Status open_memory(const EngineOptions& options);
  [[nodiscard]] Status open_disk(const MemoryOptions& options);
  // Experts that earlier runs used most are read now.
  void warm_experts(const Sha256Digest& identity);

  checkpoint::Checkpoint checkpoint_;
  WeightPlan plan_;
  std::unique_ptr<model::LanguageModel> model_;
  cache::PagePool pool_;
  WorkerPool workers_;
  std::string tenant_;
  std::unique_ptr<cache::DiskStore> disk_;
  std::unique_ptr<cache::PrefixMemory> memory_;  // uses pool and disk
  std::unique_ptr<ExpertUsesFile> uses_file_;    // null: not kept
  ReplayMode replay_;
  std::vector<std::string> notes_;
};

}  // namespace locket::engine
