// Random quantities of the traffic generator. Every draw is Philox under (seed, lane, count) and
// arithmetic in a fixed order, so a seed gives the same traffic on every machine.
#pragma once

#include <cstdint>

#include "engine/counter_random.h"

namespace locket::agent_trace {

// Of the logarithm a normal distribution; cut off at both ends.
struct LogNormal {
  double median = 1;
  double sigma = 1;
  std::int64_t least = 1;
  std::int64_t most = 1;
};

class Draws {
 public:
  // Lanes of one seed are independent of each other.
  Draws(std::uint64_t seed, std::uint64_t lane) : seed_(seed), lane_(lane) {}

  // In [0, 1).
  double uniform();
  bool chance(double probability) { return uniform() < probability; }
  // Both ends included.
  std::int64_t between(std::int64_t least, std::int64_t most);
  std::int64_t log_normal(const LogNormal& shape);
  // 1, 2, ...: each further one with the same probability.
  std::int64_t geometric(double mean);
  // From `least` up, even in the logarithm, over so many doublings.
  double over_octaves(double least, double octaves);

 private:
  const std::uint64_t seed_;
  const std::uint64_t lane_;
  std::uint64_t count_ = 0;
};

}  // namespace locket::agent_trace
