#include "engine/step_pacer.h"

#include <algorithm>

namespace locket::engine {
namespace {

constexpr double kNewShare = 0.2;  // of the newest measurement
constexpr std::size_t kFirstGuess = 32;
constexpr std::size_t kLeast = 4;

void blend(double& average, double value) {
  average = average == 0 ? value : average + kNewShare * (value - average);
}

}  // namespace

std::size_t StepPacer::prompt_tokens(std::size_t generating) const {
  const std::size_t most = std::max(options_.most_prompt_tokens, generating);
  if (generating == 0 || options_.most_stretch == 0) return most;
  std::size_t tokens = kFirstGuess;
  if (seconds_per_generated_ > 0 && seconds_per_prompt_ > 0) {
    const double step = seconds_per_generated_ * static_cast<double>(generating);
    const double spare = step * static_cast<double>(options_.most_stretch - 1);
    tokens = static_cast<std::size_t>(spare / seconds_per_prompt_);
  }
  return std::clamp(tokens, std::min(kLeast, most), most);
}

void StepPacer::record(std::size_t generating, std::size_t prompt_tokens, double seconds) {
  if (prompt_tokens == 0 && generating > 0) {
    blend(seconds_per_generated_, seconds / static_cast<double>(generating));
  }
  if (prompt_tokens == 0) return;
  const double rest = seconds - seconds_per_generated_ * static_cast<double>(generating);
  if (rest > 0) blend(seconds_per_prompt_, rest / static_cast<double>(prompt_tokens));
}

}  // namespace locket::engine
