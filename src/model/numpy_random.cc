#include "model/numpy_random.h"

#include <array>
#include <bit>
#include <cstddef>
#include <limits>

#include "base/check.h"

namespace locket::model {
namespace {

__extension__ using Uint128 = unsigned __int128;

// SeedSequence: a pool of four words, and the constants of its two hash chains.
constexpr std::size_t kPoolWords = 4;
constexpr std::uint32_t kPoolStart = 0x43b0d7e5u;
constexpr std::uint32_t kPoolFactor = 0x931e8875u;
constexpr std::uint32_t kOutputStart = 0x8b51f9ddu;
constexpr std::uint32_t kOutputFactor = 0x58f38dedu;
constexpr std::uint32_t kMixLeft = 0xca01f9ddu;
constexpr std::uint32_t kMixRight = 0x4973f715u;

constexpr std::uint64_t kPcgFactorHigh = 2549297995355413924u;
constexpr std::uint64_t kPcgFactorLow = 4865540595714422341u;

using Pool = std::array<std::uint32_t, kPoolWords>;

Uint128 join(std::uint64_t high, std::uint64_t low) { return (Uint128{high} << 64) | low; }

std::uint32_t fold(std::uint32_t value) { return value ^ (value >> 16); }

// One link of a hash chain; `constant` moves on.
std::uint32_t chain(std::uint32_t value, std::uint32_t& constant, std::uint32_t factor) {
  value ^= constant;
  constant *= factor;
  return fold(value * constant);
}

// A seed below 2^64 is two words, the low one first; missing words of the pool count as zero.
Pool fill_pool(std::uint64_t seed) {
  Pool pool = {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32), 0, 0};
  std::uint32_t constant = kPoolStart;
  for (std::uint32_t& word : pool) word = chain(word, constant, kPoolFactor);
  for (std::size_t source = 0; source < kPoolWords; ++source) {
    for (std::size_t target = 0; target < kPoolWords; ++target) {
      if (source == target) continue;
      const std::uint32_t hashed = chain(pool[source], constant, kPoolFactor);
      pool[target] = fold(kMixLeft * pool[target] - kMixRight * hashed);
    }
  }
  return pool;
}

// SeedSequence.generate_state(4, uint64): pairs of words, the low one first.
std::array<std::uint64_t, 4> seed_words(std::uint64_t seed) {
  const Pool pool = fill_pool(seed);
  std::uint32_t constant = kOutputStart;
  std::array<std::uint64_t, 4> words{};
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint64_t half = chain(pool[i % kPoolWords], constant, kOutputFactor);
    words[i / 2] |= half << (32 * (i % 2));
  }
  return words;
}

}  // namespace

NumpyRandom::NumpyRandom(std::uint64_t seed) {
  const std::array<std::uint64_t, 4> words = seed_words(seed);
  const Uint128 increment = (join(words[2], words[3]) << 1) | 1;
  increment_high_ = static_cast<std::uint64_t>(increment >> 64);
  increment_low_ = static_cast<std::uint64_t>(increment);
  step();
  const Uint128 state = join(state_high_, state_low_) + join(words[0], words[1]);
  state_high_ = static_cast<std::uint64_t>(state >> 64);
  state_low_ = static_cast<std::uint64_t>(state);
  step();
}

void NumpyRandom::step() {
  const Uint128 state = join(state_high_, state_low_) * join(kPcgFactorHigh, kPcgFactorLow) +
                        join(increment_high_, increment_low_);
  state_high_ = static_cast<std::uint64_t>(state >> 64);
  state_low_ = static_cast<std::uint64_t>(state);
}

// PCG64 (XSL-RR): the state moves first, then both halves are folded and rotated by the top six
// bits.
std::uint64_t NumpyRandom::next() {
  step();
  return std::rotr(state_high_ ^ state_low_, static_cast<int>(state_high_ >> 58));
}

// Lemire's method: the high half of draw * bound, redrawn while the low half falls into the part
// that would make some values more frequent.
std::uint64_t NumpyRandom::below(std::uint64_t bound) {
  LOCKET_CHECK(bound > std::numeric_limits<std::uint32_t>::max() + std::uint64_t{1});
  const std::uint64_t rejected = (std::uint64_t{0} - bound) % bound;
  while (true) {
    const Uint128 product = Uint128{next()} * bound;
    if (static_cast<std::uint64_t>(product) >= rejected) {
      return static_cast<std::uint64_t>(product >> 64);
    }
  }
}

}  // namespace locket::model
