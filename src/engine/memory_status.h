// What an engine's memory holds now and what it has done since the start, in numbers, for pages and
// metrics. Thread-safe with respect to a running model.
#pragma once

#include <cstdint>
#include <filesystem>

#include "engine/engine.h"

namespace locket::engine {

struct MemoryStatus {
  double bytes_per_token = 0;  // of the model's layout: what a full page costs per token
  // What a remembered token really costs now: all bytes of the budget that are in use (pages that
  // are not full, rings, bookkeeping), per token that can be found. 0: there is none.
  double measured_bytes_per_token = 0;
  std::uint64_t ram_used_bytes = 0;
  std::uint64_t ram_budget_bytes = 0;
  std::uint64_t ram_evicted_pages = 0;
  bool has_disk = false;  // all below is 0 without
  std::uint64_t disk_used_bytes = 0;
  std::uint64_t disk_quota_bytes = 0;  // 0: no limit
  std::uint64_t disk_evicted_pages = 0;
  std::uint64_t disk_dropped_values = 0;  // damaged, foreign or older
  std::uint64_t disk_written_bytes = 0;
  double disk_write_seconds = 0;
};

MemoryStatus memory_status(Engine& engine);

// The memory's folder; empty: it is not on disk.
std::filesystem::path memory_folder(Engine& engine);

}  // namespace locket::engine
