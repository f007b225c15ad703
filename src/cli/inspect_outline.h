// What `locket inspect` shows of a model of any generation: shape, what it keeps of its context,
// and what its weights take. V4.1 has more to show (inspect_facts.h). Computed from config.json;
// where there are tensors, their sizes are counted and their values are not read.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "cli/options.h"
#include "model/language_model.h"
#include "model/weight_bytes.h"

namespace locket::cli {

struct ModelSummary {
  std::string config_path;
  std::string mode;
  std::string weights_from;  // "counted from 75 tensors", "estimated from config.json"
  model::ModelOutline outline;
  model::WeightBytes weights;
  std::int64_t context = 0;  // tokens, at most what the model takes
};

// MODEL/config.json, or MODEL itself if it is a file.
[[nodiscard]] Result<std::filesystem::path> inspected_config(const InspectOptions& options);
// "V4.1"; kUnsupported lists the model types that there are.
[[nodiscard]] Result<std::string> inspected_generation(const InspectOptions& options);

// Errors of the generation's config reader and of the checkpoint.
[[nodiscard]] Result<ModelSummary> summarize_model(const InspectOptions& options);

// At most 100 columns.
std::string summary_text(const ModelSummary& summary);
// One object, indented.
std::string summary_json(const ModelSummary& summary);

}  // namespace locket::cli
