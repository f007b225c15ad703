// Which generation a checkpoint is of, before anything else of it is read.
#pragma once

#include <string_view>

#include "base/result.h"
#include "checkpoint/config_json.h"

namespace locket::engine {

// As ModelShape::generation: "V1" .. "V4.1". kUnsupported lists the model types that are known.
[[nodiscard]] Result<std::string_view> generation_name(const checkpoint::ConfigObject& config);

}  // namespace locket::engine
