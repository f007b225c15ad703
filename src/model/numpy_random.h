// The random integers of numpy's default_rng(seed): SeedSequence(seed) -> PCG64 -> integers(). The
// Engram multipliers of a checkpoint are defined as such draws, so every bit counts. Not for
// sampling. Not thread-safe: a draw moves the state.
#pragma once

#include <cstdint>

namespace locket::model {

class NumpyRandom {
 public:
  explicit NumpyRandom(std::uint64_t seed);

  // The next 64 bits of the stream.
  std::uint64_t next();

  // Uniform in [0, bound). REQUIRES: bound > 2^32; numpy draws smaller ranges in another way.
  std::uint64_t below(std::uint64_t bound);

 private:
  void step();

  // Two 128-bit numbers as high and low half.
  std::uint64_t state_high_ = 0;
  std::uint64_t state_low_ = 0;
  std::uint64_t increment_high_ = 0;
  std::uint64_t increment_low_ = 0;
};

}  // namespace locket::model
