// The bytes of a DeepSeek-V4.1 model's weights. Pure functions.
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/generations/v41_config.h"
#include "model/weight_bytes.h"

namespace locket::model {

WeightBytes estimate_v41_bytes(const V41Config& config);
WeightBytes count_v41_bytes(const V41Config& config, const checkpoint::Checkpoint& checkpoint);

}  // namespace locket::model
