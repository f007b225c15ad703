// Everything that `locket inspect` shows of a model, computed from its config.json alone: no
// weights are read, so the file is enough, and a checkpoint of any size is inspected at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/options.h"
#include "engine/replay.h"
#include "model/forward_context.h"
#include "model/generations/v41_config.h"
#include "model/generations/v41_layout.h"
#include "model/generations/v41_parameters.h"

namespace locket::cli {

// Consecutive layers with the same role.
struct LayerRun {
  std::int64_t first = 0;
  std::int64_t last = 0;
  model::LayerRole role;
};

// Parameters and multiply-adds of one part, over all layers.
struct PartFacts {
  model::ModelPart part = model::ModelPart::kCount;
  std::uint64_t parameters = 0;
  std::uint64_t prompt_parameters = 0;  // used by one token of a prompt
  std::uint64_t generated_parameters = 0;
  std::uint64_t prompt_work = 0;  // multiply-adds of one token of a prompt, at the context
  std::uint64_t generated_work = 0;
};

struct ModelFacts {
  std::string config_path;
  std::vector<std::string> unknown_keys;  // of the file, "text_config.x"
  model::NumericsMode mode = model::NumericsMode::kReference;
  engine::ReplayMode replay = engine::ReplayMode::kBounded;
  model::V41Config config;
  model::V41Memory memory;
  std::vector<LayerRun> layer_runs;

  std::int64_t context = 0;   // tokens, at most what the model takes
  std::int64_t replayed = 0;  // last tokens of such a prompt that the decoder runs over
  std::vector<PartFacts> parts;
  PartFacts sum;
  model::WorkCount prompt_token_work;     // one token of a prompt at the context
  model::WorkCount generated_token_work;  // one generated token at the context
  model::WorkCount prompt_work;           // a whole prompt of `context` tokens

  double prompt_average_work() const;
  std::uint64_t snapshot_bytes() const;  // the rings of the encoder
};

// Reads MODEL/config.json, or MODEL itself if it is a file. Errors of the config's reader.
[[nodiscard]] Result<ModelFacts> read_model_facts(const InspectOptions& options);

}  // namespace locket::cli
