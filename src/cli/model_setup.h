// What every command that runs a model needs: the loaded model, made from the command's options,
// with progress on a terminal while the weights are read.
#pragma once

#include <functional>

#include "cli/options.h"
#include "kernels/index_scores.h"
#include "service/completion.h"
#include "service/loaded_model.h"

namespace locket::cli {

struct ModelSetup {
  service::LoadedModel loaded;
  double load_seconds = 0;

  engine::Engine& engine() const { return loaded.engine(); }
  const model::LanguageModel& model() const { return loaded.engine().model(); }
};

// Called with the share that is read, 0 to 1; may be empty.
using LoadingProgress = std::function<void(double share)>;

// Nothing is remembered between sessions.
[[nodiscard]] Result<ModelSetup> set_up_model(
    const ModelOptions& options,
    kernels::IndexScoreRounding index_scores = kernels::IndexScoreRounding::kF32);

// With the memory that the options choose. Without a usable folder nothing is kept on disk: an
// error if the folder was asked for, else a warning.
[[nodiscard]] Result<ModelSetup> set_up_remembering_model(const ModelOptions& options,
                                                          const LoadingProgress& on_progress = {});

// What the sampling options mean for requests that do not say otherwise.
service::CompletionDefaults completion_defaults(const SamplingOptions& options);

// Prints "locket: error_code: message" to stderr; the exit code of a failure.
int report(const Error& error);

}  // namespace locket::cli
