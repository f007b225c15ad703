// What is known of a model's memory without loading the model: whose it is, its layout and its
// limits. For what reads, ships and explains memory and computes nothing. Plain data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/result.h"
#include "base/worker_pool.h"
#include "cache/disk_catalog.h"
#include "cache/disk_store.h"
#include "cache/kv_layout.h"
#include "cache/replay_plan.h"
#include "checkpoint/checkpoint.h"
#include "engine/replay.h"
#include "model/numerics_mode.h"

namespace locket::engine {

// Whose memory every other tenant may use, too: what an operator put there. No request has it.
inline constexpr const char* kPublicTenant = "public";

// What people know a checkpoint by: the name of its folder.
std::string model_label(const std::filesystem::path& folder);

struct ModelMemory {
  std::string label;               // the folder's name, for people
  cache::MemoryIdentity identity;  // without a tenant
  cache::KvLayout layout;
  std::int64_t vocabulary_size = 0;
  std::int64_t max_positions = 0;
  cache::ReplayGeometry geometry;
  std::int64_t decoder_layers = 0;

  // The root of a tenant's memory in the folder of `store`.
  cache::RootLabel root_label(const cache::DiskStore& store, const std::string& tenant) const;
  // Valid without the object.
  cache::PageSizes page_sizes() const;
};

// The same as an engine with this checkpoint has. kBadRequest for the plain mode, whose memory is
// never stored; errors of the config and of reading the tensors' bytes.
[[nodiscard]] Result<ModelMemory> read_model_memory(const checkpoint::Checkpoint& checkpoint,
                                                    const model::Numerics& numerics,
                                                    WorkerPool& workers);

// What a request with these tokens would find on disk, and how much of it would be computed.
struct MemoryForecast {
  cache::MissExplanation explanation;
  std::int64_t hit_tokens = 0;  // rows that would be used: whole groups of the layout
  cache::ReplayPlan plan;       // computed are the tokens from plan.start on
};
// REQUIRES: `tokens` is not empty.
MemoryForecast forecast_request(cache::DiskStore& store, const ModelMemory& memory,
                                std::span<const std::int32_t> tokens, ReplayMode replay);

}  // namespace locket::engine
