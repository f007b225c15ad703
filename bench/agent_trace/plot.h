// The hit rates as one SVG picture, 800 x 500, for a light background. Pure function.
#pragma once

#include <string>

#include "agent_trace/report.h"

namespace locket::agent_trace {

// `subtitle`: what traffic it was.
std::string plot_svg(const Results& results, const std::string& subtitle);

}  // namespace locket::agent_trace
