// How many prompt tokens a step may take while others generate, so that their tokens do not wait
// much longer for each other than without it. It learns from the times of earlier steps; results
// never depend on it, since slices do not change bits. Not thread-safe.
#pragma once

#include <cstddef>

namespace locket::engine {

struct StepPacerOptions {
  // Of one step, or as many as sequences that generate, if those are more.
  std::size_t most_prompt_tokens = 512;
  std::size_t most_stretch = 4;  // a step takes at most so many times a step without a prompt; 0:
                                 // whatever most_prompt_tokens takes
};

class StepPacer {
 public:
  explicit StepPacer(const StepPacerOptions& options) : options_(options) {}

  // Prompt tokens for a step in which `generating` sequences generate; at least 1.
  std::size_t prompt_tokens(std::size_t generating) const;

  // What a step took.
  void record(std::size_t generating, std::size_t prompt_tokens, double seconds);

 private:
  StepPacerOptions options_;
  double seconds_per_generated_ = 0;  // 0: not known yet
  double seconds_per_prompt_ = 0;
};

}  // namespace locket::engine
