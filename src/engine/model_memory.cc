#include "engine/model_memory.h"

#include <utility>

#include "cache/page_parts.h"
#include "engine/model_identity.h"
#include "model/generations/generation.h"

namespace locket::engine {

std::string model_label(const std::filesystem::path& folder) {
  return folder.has_filename() ? folder.filename().string()
                               : folder.parent_path().filename().string();
}

cache::RootLabel ModelMemory::root_label(const cache::DiskStore& store,
                                         const std::string& tenant) const {
  cache::RootLabel root = {.root = {}, .model = label, .identity = identity};
  root.identity.tenant = tenant;
  root.root = cache::root_name(store.secret(), root.identity);
  return root;
}

cache::PageSizes ModelMemory::page_sizes() const { return cache::page_sizes_of(layout); }

Result<ModelMemory> read_model_memory(const checkpoint::Checkpoint& checkpoint,
                                      const model::Numerics& numerics, WorkerPool& workers) {
  if (numerics.mode == model::NumericsMode::kPlain) {
    return fail(ErrorCode::kBadRequest,
                "memory of mode plain is never stored; use reference, fast or wide");
  }
  const checkpoint::ConfigObject root = checkpoint.config().root();
  LOCKET_TRY(const model::Generation* generation, model::find_generation(root));
  LOCKET_TRY_STATUS(model::choose_mode(*generation, numerics.mode));
  LOCKET_TRY(const model::ModelOutline outline, generation->outline(root, numerics.mode));
  const model::ModelShape& shape = outline.shape;
  ModelMemory memory;
  LOCKET_TRY(memory.identity.model, model_identity(checkpoint, workers));
  memory.label = model_label(checkpoint.folder());
  memory.identity.numerics_mode = numerics.memory_name();
  memory.identity.numerics_revision = model::kNumericsRevision;
  memory.layout = outline.memory.layout;
  memory.vocabulary_size = shape.vocabulary_size;
  memory.max_positions = shape.max_positions;
  memory.geometry = {.window = shape.window,
                     .encoder_layers = shape.boundary,
                     .group = memory.layout.largest_tokens_per_row()};
  memory.decoder_layers = shape.layer_count - shape.boundary;
  return memory;
}

MemoryForecast forecast_request(cache::DiskStore& store, const ModelMemory& memory,
                                std::span<const std::int32_t> tokens, ReplayMode replay) {
  MemoryForecast forecast;
  forecast.explanation =
      cache::explain_miss(store, memory.root_label(store, {}), tokens, memory.page_sizes());
  const std::int64_t group = memory.geometry.group;
  forecast.hit_tokens = forecast.explanation.hit_tokens / group * group;
  const auto prompt = static_cast<std::int64_t>(tokens.size());
  // Of a group that is not whole there are no rows to be had.
  const bool has_all_groups = forecast.hit_tokens >= prompt / group * group;
  if (has_all_groups && forecast.explanation.reason == cache::MissReason::kEnd) {
    forecast.explanation.reason = cache::MissReason::kNone;
  }
  const DecoderGeometry reach = {.window = memory.geometry.window,
                                 .decoder_layers = memory.decoder_layers};
  forecast.plan = cache::make_replay_plan({.prompt_tokens = prompt,
                                           .stored_tokens = forecast.hit_tokens,
                                           .decoder_tokens = replay_length(replay, prompt, reach),
                                           .snapshots = forecast.explanation.snapshots},
                                          memory.geometry);
  return forecast;
}

}  // namespace locket::engine
