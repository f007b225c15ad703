// The generations of DeepSeek models that this program runs, and how the right one is found: by
// `model_type` of config.json. A generation is a set of functions; each has files of its own here.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/config_json.h"
#include "model/expert_placement.h"
#include "model/generations/weight_reader.h"
#include "model/language_model.h"
#include "model/numerics_mode.h"
#include "model/weight_bytes.h"

namespace locket::model {

struct LoadOptions {
  Numerics numerics;
  std::vector<std::int32_t> token_map = {};  // Engram class of every token id; V4.1 only
  LoadProgress progress = {};                // may be empty
  ExpertPlacement placement = {};
};

struct Generation {
  std::string_view name;        // "V4.1", as ModelShape::generation
  std::string_view model_type;  // of config.json
  // Modes that it has, the one that is used without a wish first. Activations are rounded as the
  // official code does (`reference`, `fast`) only where vectors of that code say how.
  std::span<const NumericsMode> modes;

  // Errors of the config: kBadCheckpoint, kUnsupported. REQUIRES: the mode is one of `modes`.
  Result<ModelOutline> (*outline)(const checkpoint::ConfigObject& root, NumericsMode mode);
  // `checkpoint` may be null: an estimate.
  Result<WeightBytes> (*count_bytes)(const checkpoint::ConfigObject& root,
                                     const checkpoint::Checkpoint* checkpoint);
  // kBadCheckpoint names the tensor, the file, what was found and what is wanted. The checkpoint
  // must outlive the model.
  Result<std::unique_ptr<LanguageModel>> (*load)(checkpoint::Checkpoint& checkpoint,
                                                 const LoadOptions& options);
  // Whether a checkpoint is what its config says, without reading its weights: every tensor is
  // there, with the type and the shape that the model needs, and nothing else is. Gives a line
  // about tensors that are known and not used; may be empty.
  Result<std::string> (*check)(checkpoint::Checkpoint& checkpoint);
  // Tensors that are large and of which the model's identity takes samples only: routed experts,
  // Engram tables.
  bool (*is_sampled)(std::string_view tensor);
};

// Oldest first.
std::span<const Generation> generations();

// By `model_type`; kUnsupported lists those that there are.
[[nodiscard]] Result<const Generation*> find_generation(const checkpoint::ConfigObject& root);

// The numerics that are meant: those wished for, or the generation's own if there is no wish.
// kUnsupported if the generation does not have the mode.
[[nodiscard]] Result<NumericsMode> choose_mode(const Generation& generation,
                                               std::optional<NumericsMode> wish);

}  // namespace locket::model
