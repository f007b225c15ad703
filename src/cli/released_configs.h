// What config.json says in each released generation, as far as a model's shape goes: for tables and
// measurements at true sizes without a checkpoint. Facts of the releases; keys that no shape
// depends on are left out. Constant data, thread-safe.
#pragma once

#include <span>
#include <string_view>

namespace locket::cli {

struct ReleasedConfig {
  std::string_view id;    // as model::LineageModel::id
  std::string_view text;  // JSON
};

// Oldest first, in the order of model::lineage_models().
std::span<const ReleasedConfig> released_configs();

}  // namespace locket::cli
