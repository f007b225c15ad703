// The bytes of the weights of a model with latent attention. Pure functions.
#pragma once

#include "checkpoint/checkpoint.h"
#include "model/generations/mla_config.h"
#include "model/weight_bytes.h"

namespace locket::model {

// From the config alone; `format`: of all weights that a release quantizes.
WeightBytes estimate_mla_bytes(const MlaModelConfig& config, kernels::WeightFormat format);
WeightBytes count_mla_bytes(const MlaModelConfig& config, const checkpoint::Checkpoint& checkpoint);

}  // namespace locket::model
