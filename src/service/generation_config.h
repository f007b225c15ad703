// What a checkpoint says of itself for those who serve it: how its makers sample from it, and what
// tells its answers from another's.
#pragma once

#include <filesystem>
#include <string>

#include "base/result.h"
#include "service/loaded_model.h"
#include "service/prepared_request.h"

namespace locket::service {

// FOLDER/generation_config.json, as far as it says temperature, top_p, top_k and min_p; temperature
// 1 and no filter where it says nothing, or is not there. kBadCheckpoint names the file, the key
// and what is wrong.
[[nodiscard]] Result<CompletionDefaults> read_generation_config(
    const std::filesystem::path& folder);

// Stored token ids mean the same only for the same text of this.
std::string answers_identity(const LoadedModel& model);

}  // namespace locket::service
