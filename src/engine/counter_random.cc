#include "engine/counter_random.h"

namespace locket::engine {
namespace {

constexpr int kRounds = 10;
constexpr std::uint64_t kFactorEven = 0xD2511F53u;
constexpr std::uint64_t kFactorOdd = 0xCD9E8D57u;
constexpr std::uint32_t kKeyStepEven = 0x9E3779B9u;
constexpr std::uint32_t kKeyStepOdd = 0xBB67AE85u;

std::uint32_t low_word(std::uint64_t value) { return static_cast<std::uint32_t>(value); }
std::uint32_t high_word(std::uint64_t value) { return static_cast<std::uint32_t>(value >> 32); }

}  // namespace

std::array<std::uint32_t, 4> philox_block(std::array<std::uint32_t, 4> counter,
                                          std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    const std::uint64_t even = kFactorEven * counter[0];
    const std::uint64_t odd = kFactorOdd * counter[2];
    counter = {high_word(odd) ^ counter[1] ^ key[0], low_word(odd),
               high_word(even) ^ counter[3] ^ key[1], low_word(even)};
    key[0] += kKeyStepEven;
    key[1] += kKeyStepOdd;
  }
  return counter;
}

double uniform_draw(const DrawKey& key) {
  const std::array<std::uint32_t, 4> block =
      philox_block({low_word(key.position), high_word(key.position), low_word(key.choice),
                    high_word(key.choice)},
                   {low_word(key.seed), high_word(key.seed)});
  const std::uint64_t bits = (std::uint64_t{block[1]} << 32 | block[0]) >> 11;
  return static_cast<double>(bits) * 0x1.0p-53;
}

}  // namespace locket::engine
