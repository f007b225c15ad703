#include "cli/measured_memory.h"

#include <algorithm>
#include <utility>

#include "base/system_memory.h"
#include "checkpoint/config_json.h"
#include "cli/released_configs.h"
#include "model/generations/generation.h"
#include "model/generations/lineage_bytes.h"

namespace locket::cli {
namespace {

constexpr std::uint64_t kMostBudget = std::uint64_t{256} << 20;
constexpr std::uint64_t kBudgetShare = 16;  // of the free memory
constexpr std::int64_t kMostTokens = 65536;

std::uint64_t budget_of(const MeasureWishes& wishes) {
  if (wishes.budget_bytes > 0) return wishes.budget_bytes;
  return std::min(kMostBudget, available_memory_bytes() / kBudgetShare);
}

// Whole pages, at least one.
std::int64_t tokens_that_fit(const cache::KvLayout& layout, std::uint64_t budget) {
  const auto pages =
      static_cast<std::int64_t>(budget / std::max<std::size_t>(1, layout.page_bytes()));
  return std::clamp<std::int64_t>(pages * cache::kTokensPerPage, cache::kTokensPerPage,
                                  kMostTokens);
}

Status measure(const MeasureWishes& wishes, std::string_view config, MeasuredMemory& measured) {
  LOCKET_TRY(const ReleasedOutline released, released_outline(config));
  const model::ModelOutline& outline = released.outline;
  measured.mode = released.mode;
  measured.memory = outline.memory;
  const std::int64_t tokens =
      wishes.tokens > 0 ? wishes.tokens : tokens_that_fit(outline.memory.layout, budget_of(wishes));
  LOCKET_TRY(measured.live, engine::fill_live_cache(outline.memory, tokens));
  LOCKET_TRY(measured.stored, engine::fill_stored_cache(outline, tokens, wishes.scratch));
  return {};
}

}  // namespace

double StreamGroup::bytes_per_token() const {
  return static_cast<double>(layers) * static_cast<double>(row_bytes) /
         static_cast<double>(tokens_per_row);
}

std::vector<StreamGroup> stream_groups(const cache::KvLayout& layout) {
  std::vector<StreamGroup> groups;
  for (const cache::RowStream& stream : layout.streams) {
    const auto found = std::ranges::find_if(groups, [&](const StreamGroup& group) {
      return group.name == stream.name && group.row_bytes == stream.row_bytes &&
             group.tokens_per_row == stream.tokens_per_row;
    });
    if (found != groups.end()) {
      found->layers += 1;
    } else {
      groups.push_back({.name = stream.name,
                        .layers = 1,
                        .row_bytes = stream.row_bytes,
                        .tokens_per_row = stream.tokens_per_row});
    }
  }
  return groups;
}

Result<ReleasedOutline> released_outline(std::string_view config) {
  LOCKET_TRY(const checkpoint::ConfigFile file,
             checkpoint::ConfigFile::parse(std::string(config), "the released config"));
  LOCKET_TRY(const model::Generation* generation, model::find_generation(file.root()));
  const model::NumericsMode mode = generation->modes.front();
  LOCKET_TRY(model::ModelOutline outline, generation->outline(file.root(), mode));
  return ReleasedOutline{std::move(outline), std::string(numerics_mode_name(mode))};
}

std::vector<MeasuredMemory> measure_released_memory(const MeasureWishes& wishes) {
  const std::vector<model::LineageModel> models = model::lineage_models();
  std::vector<MeasuredMemory> all;
  for (const ReleasedConfig& config : released_configs()) {
    const auto known =
        std::ranges::find(models, config.id, [](const auto& entry) { return entry.id; });
    MeasuredMemory measured;
    measured.id = config.id;
    measured.generation = known == models.end() ? measured.id : known->generation;
    const Status status = measure(wishes, config.text, measured);
    if (!status) measured.fault = status.error().message;
    all.push_back(std::move(measured));
  }
  return all;
}

const MeasuredMemory* find_measured(const std::vector<MeasuredMemory>& all, std::string_view id) {
  const auto found = std::ranges::find(all, id, &MeasuredMemory::id);
  return found == all.end() || !found->fault.empty() ? nullptr : &*found;
}

}  // namespace locket::cli
