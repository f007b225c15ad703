// Random numbers without a state: Philox 4x32 with 10 rounds turns (seed, choice, position) into a
// number. The same key gives the same number on every machine, whatever was drawn before and
// however a request was interrupted, batched or resumed. Not for secrets. Thread-safe.
#pragma once

#include <array>
#include <cstdint>

namespace locket::engine {

// Names one draw of a request.
struct DrawKey {
  std::uint64_t seed = 0;
  std::uint64_t choice = 0;    // which of the request's completions
  std::uint64_t position = 0;  // index in the sequence of the token that is drawn
};

// One block of the generator: four words for a counter of four words under a key of two.
std::array<std::uint32_t, 4> philox_block(std::array<std::uint32_t, 4> counter,
                                          std::array<std::uint32_t, 2> key);

// Uniform in [0, 1), a multiple of 2^-53. The seed is the key, position and choice are the counter,
// low words first; the number is made of the block's first two words.
double uniform_draw(const DrawKey& key);

}  // namespace locket::engine
