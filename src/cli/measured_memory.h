// The memory of the released models, measured: each generation's own code lays it out from the
// released config, rows of random values are written into a live cache and into a store on disk,
// and the bytes of both are counted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/live_cache.h"
#include "engine/stored_cache.h"
#include "model/language_model.h"

namespace locket::cli {

struct MeasureWishes {
  std::int64_t tokens = 0;             // 0: as many as the budget allows, whole pages
  std::uint64_t budget_bytes = 0;      // 0: a share of the free memory
  std::filesystem::path scratch = {};  // on the disk to measure
};

struct MeasuredMemory {
  std::string id;          // as model::LineageModel::id
  std::string generation;  // "V4-Flash"
  std::string fault;       // why it could not be measured; empty: all below is there
  std::string mode;        // of numerics, whose row formats these are
  model::MemoryDescription memory;
  engine::LiveCacheSize live;
  engine::StoredCacheSize stored;
};

// The shape that the generation's own code makes of the released config, in the mode that it has
// first. kUnsupported if this program does not have the generation.
struct ReleasedOutline {
  model::ModelOutline outline;
  std::string mode;
};
[[nodiscard]] Result<ReleasedOutline> released_outline(std::string_view config);

// Streams of the same name and rate together: layers, bytes of a row, tokens per row.
struct StreamGroup {
  std::string name;
  std::int64_t layers = 0;
  std::size_t row_bytes = 0;
  std::int64_t tokens_per_row = 1;

  double bytes_per_token() const;
};
std::vector<StreamGroup> stream_groups(const cache::KvLayout& layout);

// Of every released model, oldest first. Takes about a second for 100 MB of rows.
std::vector<MeasuredMemory> measure_released_memory(const MeasureWishes& wishes);

// The one with this id; null if it is not there or was not measured.
const MeasuredMemory* find_measured(const std::vector<MeasuredMemory>& all, std::string_view id);

}  // namespace locket::cli
