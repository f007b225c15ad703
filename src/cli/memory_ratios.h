// What was published about the bytes per token of the generations, beside what the layouts say and
// what was measured, with the reason where they differ. Sources are named as docs/lineage.md does.
// Pure function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/measured_memory.h"

namespace locket::cli {

struct MemoryRatio {
  enum class Unit { kBytes, kPercent, kTimes, kCount };

  std::string claim;
  std::string source;
  Unit unit = Unit::kBytes;
  double published = 0;
  std::string layout;              // of `computed`: in which row formats
  std::optional<double> computed;  // by the released shapes; none: it does not follow from them
  std::optional<double> measured;  // none: nothing was measured
  std::string reason;              // of a difference; empty: there is none

  std::string text(double value) const;  // with its unit
};

// `measured` may be empty.
std::vector<MemoryRatio> memory_ratios(const std::vector<MeasuredMemory>& measured);

}  // namespace locket::cli
