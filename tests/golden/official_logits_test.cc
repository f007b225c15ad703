// The whole model in mode `reference` against logits of the vendor's own code: on prompts where no
// value lies near a rounding boundary they must agree; on the others, where two orders of summation
// of the vendor's code itself part, distances are reported beside that noise.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

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

// Looks for one element of the streams of `position` that, moved by one bfloat16 unit, makes our
// logits there the official ones: the smallest difference that another order of sums can make.
bool explain_by_one_unit(OracleModel& oracle, const std::string& name, const OfficialPrompt& prompt,
                         std::size_t position) {
  const auto tokens = std::span(prompt.prompt).first(position + 1);
  const auto wanted = prompt.logits.row(position - prompt.first_position);
  LayerStack stack(oracle, tokens);
  stack.run();
  const auto width =
      static_cast<std::size_t>(oracle.config().stream_count * oracle.config().hidden_size);
  for (std::int64_t first = oracle.config().layer_count; first >= 0; --first) {
    for (std::size_t i = 0; i < 2 * width; ++i) {
      const UnitStep step = i % 2 == 0 ? UnitStep::kUp : UnitStep::kDown;
      const FloatMatrix logits = stack.rerun(first, [&](FloatMatrix& streams) {
        float& value = streams.row(position)[i / 2];
        value = next_bf16(value, step);
      });
      if (max_abs_difference(logits.row(position), wanted) > kTolerance) continue;
      print_figures(fmt::format(
          "{}: one bfloat16 unit in element {} of the {} streams before layer {} "
          "at position {} makes the row equal to {:.1e}",
          name, i / 2, width, first, position, max_abs_difference(logits.row(position), wanted)));
      return true;
    }
  }
  return false;
}

// A calm prompt that parts from the official logits: where, by how much, and from what.
void explain(OracleModel& oracle, const std::string& name, const OfficialPrompt& prompt,
             const Comparison& comparison) {
  std::size_t position = prompt.first_position;
  while (max_abs_difference(comparison.logits.row(position),
                            prompt.logits.row(position - prompt.first_position)) <= kTolerance) {
    ++position;
  }
  print_figures(fmt::format("{}: parts at position {}; {} of {} rows are within 1e-4; {}", name,
                            position, comparison.prefill.near_rows, comparison.prefill.rows,
                            describe(comparison.prefill)));
  EXPECT_GE(comparison.prefill.argmax_share(), 0.9) << name;
  if (prompt.is_traced) {
    const std::string shape = name.substr(0, name.find(' '));
    const OracleFile file = read_official_trace_file(shape);
    const OfficialTrace trace(file, prompt);
    const auto flip =
        first_difference(run_layers(oracle, prompt.prompt).stored, trace.stored(oracle.config()),
                         static_cast<std::int64_t>(position));
    print_figures(fmt::format("{}: first difference from the trace: {}", name, describe(flip)));
    EXPECT_TRUE(flip) << name;
    return;
  }
  EXPECT_TRUE(explain_by_one_unit(oracle, name, prompt, position))
      << name << " parts at position " << position << " and no single unit explains it";
}

TEST(OfficialLogitsTest, CalmPromptsAgreeInPrefill) {
  std::size_t calm = 0;
  std::size_t near = 0;
  std::size_t decode_calm = 0;
  std::size_t decode_near = 0;
  for (const std::string_view shape : {"micro", "odd"}) {
    OracleModel& oracle = OracleModel::get(shape, NumericsMode::kReference);
    for (const OfficialPrompt& prompt : read_official_prompts(shape)) {
      if (prompt.prefill_noise > kCalmNoise) continue;
      const std::string name = fmt::format("{} p{}", shape, prompt.name);
      const Comparison comparison = compare(oracle, prompt);
      const bool is_near = comparison.prefill.largest <= kTolerance;
      ++calm;
      near += is_near ? 1 : 0;
      if (!is_near) explain(oracle, name, prompt, comparison);
      if (prompt.decode_noise > kCalmNoise) continue;
      ++decode_calm;
      decode_near += comparison.decode.largest <= kTolerance ? 1 : 0;
    }
  }
  print_figures(
      fmt::format("official: {} of {} calm prompts within 1e-4 at every prefill position; {} of {} "
                  "prompts with calm "
                  "decode steps within 1e-4 at every step",
                  near, calm, decode_near, decode_calm));
  ASSERT_EQ(calm, 20u);
  EXPECT_GE(static_cast<double>(near), 0.9 * static_cast<double>(calm));
  ASSERT_GE(decode_calm, 10u);
  EXPECT_GE(static_cast<double>(decode_near), 0.8 * static_cast<double>(decode_calm));
}

// Distances from the official code beside those of the official code from itself with exact sums.
TEST(OfficialLogitsTest, OtherPromptsPartNoFurtherThanTheReferencesDo) {
  print_figures(
      "prompt | ours vs official | ours vs exact | exact vs official (prefill; decode below)");
  std::vector<double> ratios;
  std::size_t prompts = 0;
  std::size_t near_exact = 0;
  for (const std::string_view shape : kOracleShapes) {
    OracleModel& oracle = OracleModel::get(shape, NumericsMode::kReference);
    for (const OfficialPrompt& prompt : read_official_prompts(shape)) {
      const Comparison one = compare(oracle, prompt);
      print_figures(fmt::format("{} p{} | {} | {} | {}", shape, prompt.name, describe(one.prefill),
                                describe(one.prefill_exact), describe(one.prefill_noise)));
      print_figures(fmt::format("{} p{} decode | {} | {} | {}", shape, prompt.name,
                                describe(one.decode), describe(one.decode_exact),
                                describe(one.decode_noise)));
      prompts += 1;
      near_exact += one.prefill_exact.largest <= kTolerance ? 1 : 0;
      if (prompt.prefill_noise <= kCalmNoise) continue;
      ratios.push_back(one.prefill.rms() / one.prefill_noise.rms());
      ratios.push_back(one.prefill_exact.rms() / one.prefill_noise.rms());
    }
  }
  print_figures(
      fmt::format("official: rms distance of ours as a part of the references' own, prompts that "
                  "are not calm: median "
                  "{:.2f}, largest {:.2f}, {} values",
                  median(ratios), std::ranges::max(ratios), ratios.size()));
  print_figures(
      fmt::format("official: {} of {} prompts within 1e-4 of the official code with exact sums at "
                  "every position",
                  near_exact, prompts));
  EXPECT_LE(median(ratios), 1.2);
  EXPECT_GE(static_cast<double>(near_exact), 0.4 * static_cast<double>(prompts));
}

}  // namespace
}  // namespace locket::test_support
