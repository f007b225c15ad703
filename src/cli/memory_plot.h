// The plots of docs/lineage.md, as `locket memory --svg` writes them. Pure function.
#pragma once

#include <string>
#include <vector>

#include "cli/measured_memory.h"

namespace locket::cli {

struct MemoryPlot {
  std::string file_name;
  std::string svg;
};

// Bytes per token of each generation; bytes of one text over its length; work of attention over the
// length. `measured` may be empty: then nothing measured is shown.
std::vector<MemoryPlot> memory_plots(const std::vector<MeasuredMemory>& measured);

}  // namespace locket::cli
