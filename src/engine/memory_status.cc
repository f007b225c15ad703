#include "engine/memory_status.h"

namespace locket::engine {
namespace {

cache::DiskStore* disk_of(Engine& engine) {
  return engine.memory() == nullptr ? nullptr : engine.memory()->disk();
}

}  // namespace

MemoryStatus memory_status(Engine& engine) {
  MemoryStatus status = {.bytes_per_token = engine.model().layout().bytes_per_token(),
                         .ram_used_bytes = engine.pool().used_bytes(),
                         .ram_budget_bytes = engine.pool().budget_bytes()};
  if (engine.memory() != nullptr) {
    const cache::MemoryCounts counts = engine.memory()->counts();
    status.ram_evicted_pages = counts.pages_evicted;
    if (counts.tokens > 0) {
      status.measured_bytes_per_token =
          static_cast<double>(status.ram_used_bytes) / static_cast<double>(counts.tokens);
    }
  }
  const cache::DiskStore* disk = disk_of(engine);
  if (disk == nullptr) return status;
  const cache::DiskCounts counts = disk->counts();
  status.has_disk = true;
  status.disk_used_bytes = disk->used_bytes();
  status.disk_quota_bytes = disk->quota_bytes();
  status.disk_evicted_pages = counts.pages_evicted;
  status.disk_dropped_values = counts.values_dropped;
  status.disk_written_bytes = counts.payload_bytes_written;
  status.disk_write_seconds = counts.write_seconds;
  return status;
}

std::filesystem::path memory_folder(Engine& engine) {
  const cache::DiskStore* disk = disk_of(engine);
  return disk == nullptr ? std::filesystem::path() : disk->directory();
}

}  // namespace locket::engine
