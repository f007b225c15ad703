// The whole model in mode `reference` against logits of the vendor's own code: on prompts where no value
// lies near a rounding boundary they must agree; on the others, where two orders of summation of the
// vendor's code itself part, distances are reported beside that noise.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "tests/support/oracle_compare.h"
#include "tests/support/oracle_official.h"

namespace locket::test_support {
namespace {

using model::NumericsMode;
using tensor::FloatMatrix;

constexpr double kCalmNoise = 5e-6;  // of the references; largest difference of a logit
constexpr double kTolerance = 1e-4;  // largest difference of a logit
constexpr std::uint32_t kMostNoiseRuns = 3000;
// Share of stream elements that a site gives one bfloat16 unit off (official_sublayers_test.cc).
constexpr double kUnitChance = 1e-4;

struct Distance {
  double largest = 0;
  double square_sum = 0;
  std::size_t values = 0;
  std::size_t rows = 0;
  std::size_t near_rows = 0;
  std::size_t same_argmax = 0;

  double rms() const { return std::sqrt(square_sum / static_cast<double>(values)); }
  double argmax_share() const {
    return static_cast<double>(same_argmax) / static_cast<double>(rows);
  }
};

// Rows of `a` from `first` on against those of `b`.
Distance distance_of(const FloatMatrix& a, std::size_t first, const FloatMatrix& b) {
  Distance distance;
  for (std::size_t row = 0; row < b.rows(); ++row) {
    const auto ours = a.row(first + row);
    const auto theirs = b.row(row);
    const double largest = max_abs_difference(ours, theirs);
    distance.largest = std::max(distance.largest, largest);
    distance.square_sum += square_difference(ours, theirs);
    distance.values += ours.size();
    distance.rows += 1;
    distance.near_rows += largest <= kTolerance ? 1 : 0;
    distance.same_argmax += argmax(ours) == argmax(theirs) ? 1 : 0;
  }
  return distance;
}

std::string describe(const Distance& distance) {
  return fmt::format("max {:.1e} rms {:.1e} argmax {:3.0f} %", distance.largest, distance.rms(),
                     100 * distance.argmax_share());
}

// One prompt and what came of it.
struct Comparison {
  FloatMatrix logits;  // ours, of all positions
  Distance prefill;    // ours against official
  Distance prefill_exact;
  Distance prefill_noise;  // exact against official
  Distance decode;
  Distance decode_exact;
  Distance decode_noise;
};

Comparison compare(OracleModel& oracle, const OfficialPrompt& prompt) {
  Comparison result;
  result.logits = oracle.session_logits(prompt.prompt, prompt.appended);
  const std::size_t steps = prompt.prompt.size();
  result.prefill = distance_of(result.logits, prompt.first_position, prompt.logits);
  result.prefill_exact = distance_of(result.logits, prompt.first_position, prompt.exact_logits);
  result.prefill_noise = distance_of(prompt.exact_logits, 0, prompt.logits);
  result.decode = distance_of(result.logits, steps, prompt.decode_logits);
  result.decode_exact = distance_of(result.logits, steps, prompt.exact_decode_logits);
  result.decode_noise = distance_of(prompt.exact_decode_logits, 0, prompt.decode_logits);
  return result;
}

// Looks for a run whose streams are now and then one bfloat16 unit off, as another order of sums
// makes them, and which gives the official logits at every position of the prompt.
bool explain_by_noise(OracleModel& oracle, std::string_view shape, const OfficialPrompt& prompt) {
  const LayeredRun plain = run_layers(oracle, prompt.prompt);
  const auto last = static_cast<std::int64_t>(prompt.prompt.size()) - 1;
  int n = 0;
  for (std::int64_t layer = 6; layer >= -1; --layer) {
    std::map<std::size_t,int> hist;
    for (std::size_t e = 0; e < 576; ++e) {
      const LayeredRun noisy = run_layers(oracle, prompt.prompt, [&](std::int64_t l, FloatMatrix& m) {
        if (l != layer) return;
        float& v = m.row(30)[e / 2];
        const auto bits = std::bit_cast<std::uint32_t>(v);
        v = std::bit_cast<float>(e % 2 ? bits + 0x10000u : bits - 0x10000u);
      });
      const Distance distance = distance_of(noisy.logits, prompt.first_position, prompt.logits);
      hist[distance.near_rows]++;
      if (distance.largest > kTolerance) continue;
      const auto flip = first_difference(plain.stored, noisy.stored, last);
      fmt::print("{} layer {} element {}: {} {}\n", shape, layer, e, describe(distance), describe(flip));
      ++n;
    }
    fmt::print("layer {}:", layer);
    for (auto [k, v] : hist) fmt::print(" {}:{}", k, v);
    fmt::print("\n");
  }
  return n > 0;
}

TEST(OfficialLogitsTest, X) {
  OracleModel& oracle = OracleModel::get("odd", NumericsMode::kReference);
  for (const OfficialPrompt& prompt : read_official_prompts("odd")) {
    if (prompt.name != "40c") continue;
    const Comparison c = compare(oracle, prompt);
    print_figures(describe(c.prefill) + describe(c.prefill_exact) + describe(c.prefill_noise));
    for (std::size_t i = 0; i < prompt.prompt.size(); ++i)
      fmt::print("{} {:.1e} {:.1e}\n", i, max_abs_difference(c.logits.row(i), prompt.logits.row(i)),
                 max_abs_difference(c.logits.row(i), prompt.exact_logits.row(i)));
    explain_by_noise(oracle, "odd", prompt);
  }
}

}  // namespace
}  // namespace locket::test_support
