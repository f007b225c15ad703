// What each mechanism of a layer needs to know, from the model's config. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "model/compressor.h"
#include "model/csa2_attention.h"
#include "model/generations/v41_config.h"
#include "model/hyper_connections.h"
#include "model/moe.h"

namespace locket::model {

Csa2Config attention_config(const V41Config& config, std::int64_t layer);
CompressorConfig compressor_config(const V41Config& config, std::int64_t layer);
HyperConnectionsConfig site_config(const V41Config& config);
MoeConfig moe_config(const V41Config& config, std::int64_t layer);

// Rotation frequencies [rope_dim / 2] of the layers with compressed rows (YaRN).
std::vector<float> compressed_frequencies(const V41Config& config);

}  // namespace locket::model
