// What `locket memory` prints: bytes per token of each released generation by its layouts, what was
// measured, and what was published. Pure functions; texts have at most 100 columns.
#pragma once

#include <string>
#include <vector>

#include "cli/measured_memory.h"

namespace locket::cli {

// Every released generation, every layout, stream by stream.
std::string lineage_table();

// REQUIRES: `measured` is not empty.
std::string measured_table(const std::vector<MeasuredMemory>& measured);

// `measured` may be empty.
std::string ratio_table(const std::vector<MeasuredMemory>& measured);

// All of it as one object, indented.
std::string memory_json(const std::vector<MeasuredMemory>& measured);

}  // namespace locket::cli
