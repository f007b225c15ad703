// What is known of a model's memory without loading the model: whose it is, its layout and its
// limits. For what reads, ships and explains memory and computes nothing. Plain data.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/worker_pool.h"
#include "cache/disk_store.h"
#include "cache/kv_layout.h"
#include "checkpoint/checkpoint.h"
#include "model/numerics_mode.h"

namespace locket::engine {

struct ModelMemory {
  std::string label;               // the folder's name, for people
  cache::MemoryIdentity identity;  // without a tenant
  cache::KvLayout layout;
  std::int64_t vocabulary_size = 0;
  std::int64_t max_positions = 0;

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

}  // namespace locket::engine
