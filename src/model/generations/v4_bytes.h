// The bytes of a DeepSeek-V4 model's weights. Pure functions.
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/generations/v4_config.h"
#include "model/weight_bytes.h"

namespace locket::model {

// With the number formats of the release.
WeightBytes estimate_v4_bytes(const V4Config& config);
WeightBytes count_v4_bytes(const V4Config& config, const checkpoint::Checkpoint& checkpoint);

}  // namespace locket::model
