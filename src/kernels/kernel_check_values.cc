#include <cmath>

#include "kernels/kernel_check_cases.h"
#include "kernels/top_k.h"

namespace locket::kernels {
namespace {

CheckOutcome norm_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t count = 1 + draws.below(200);
  const Rounding rounding = draws.rounding();
  const std::vector<float> x = draws.values(count, rounding);
  const std::vector<float> weight = draws.usual_values(count);
  CheckOutcome outcome = {.actual = std::vector<float>(count),
                          .expected = std::vector<float>(count),
                          .shape = check_shape({{"values", count}})};
  table.elementwise.rms_norm(x, weight, 1e-6f, rounding, outcome.actual);
  reference_kernels().elementwise.rms_norm(x, weight, 1e-6f, rounding, outcome.expected);
  return outcome;
}

CheckOutcome swiglu_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t count = 1 + draws.below(100);
  const GateShape shape = {.limit = 10.0f, .weight = 0.7f, .rounding = draws.rounding()};
  const std::vector<float> gate = draws.values(count);
  const std::vector<float> up = draws.values(count);
  CheckOutcome outcome = {.actual = std::vector<float>(count),
                          .expected = std::vector<float>(count),
                          .shape = check_shape({{"values", count}})};
  table.elementwise.swiglu(gate, up, shape, outcome.actual);
  reference_kernels().elementwise.swiglu(gate, up, shape, outcome.expected);
  return outcome;
}

CheckOutcome rotation_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t pairs = 1 + draws.below(70);
  const RotaryDirection direction =
      draws.flip() ? RotaryDirection::kForward : RotaryDirection::kInverse;
  const Rounding rounding = draws.rounding();
  const std::vector<float> cos = draws.usual_values(pairs);
  const std::vector<float> sin = draws.usual_values(pairs);
  CheckOutcome outcome = {.actual = draws.values(2 * pairs), .expected = {}, .shape = {}};
  outcome.shape = check_shape({{"pairs", pairs}});
  outcome.expected = outcome.actual;
  table.elementwise.rotate_pairs(outcome.actual, cos, sin, direction, rounding);
  reference_kernels().elementwise.rotate_pairs(outcome.expected, cos, sin, direction, rounding);
  return outcome;
}

CheckOutcome quantizer_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t groups = 1 + draws.below(6);
  CheckOutcome outcome = {.actual = draws.values(32 * groups), .expected = {}, .shape = {}};
  outcome.shape = check_shape({{"groups", groups}});
  outcome.expected = outcome.actual;
  table.elementwise.fake_quantize_fp8(outcome.actual);
  reference_kernels().elementwise.fake_quantize_fp8(outcome.expected);
  return outcome;
}

CheckOutcome double_dot_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t count = 1 + draws.below(9);
  const std::size_t width = 1 + draws.below(150);
  const std::vector<float> rows = draws.values(count * width);
  const std::vector<float> x = draws.values(width);
  std::vector<double> actual(count);
  std::vector<double> expected(count);
  table.streams.dots_in_double(rows, x, actual);
  reference_kernels().streams.dots_in_double(rows, x, expected);
  CheckOutcome outcome;
  outcome.shape = check_shape({{"rows", count}, {"values", width}});
  // A double is compared as what a float holds of it and what is left.
  const auto split = [](const std::vector<double>& sums, std::vector<float>& parts) {
    for (const double sum : sums) {
      const auto rounded = static_cast<float>(sum);
      parts.push_back(rounded);
      parts.push_back(static_cast<float>(sum - static_cast<double>(rounded)));
    }
  };
  split(actual, outcome.actual);
  split(expected, outcome.expected);
  return outcome;
}

CheckOutcome stream_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t streams = 1 + draws.below(8);
  const std::size_t hidden = 1 + draws.below(70);
  const Rounding rounding = draws.rounding();
  const std::vector<float> comb = draws.usual_values(streams * streams);
  const std::vector<float> post = draws.usual_values(streams);
  const std::vector<float> y = draws.values(hidden);
  const StreamExpansion expansion = {.comb = comb, .post = post, .y = y, .rounding = rounding};
  CheckOutcome outcome = {.actual = draws.values(streams * hidden), .expected = {}, .shape = {}};
  outcome.shape = check_shape({{"streams", streams}, {"values", hidden}});
  outcome.expected = outcome.actual;
  const auto run = [&](const StreamKernels& kernels, std::vector<float>& values) {
    kernels.expand(expansion, values);
    std::vector<float> collapsed(hidden);
    kernels.collapse(values, post, rounding, collapsed);
    kernels.round_to_bf16(collapsed);
    values.insert(values.end(), collapsed.begin(), collapsed.end());
  };
  run(table.streams, outcome.actual);
  run(reference_kernels().streams, outcome.expected);
  return outcome;
}

CheckOutcome coefficient_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t streams = draws.flip() ? 4 : 1 + draws.below(6);
  const std::size_t count = (2 + streams) * streams;
  const std::vector<float> mixes = draws.values(count);
  const std::vector<float> base = draws.usual_values(count);
  const std::vector<float> scale = draws.usual_values(3);
  const StreamMixing mixing = {.streams = streams,
                               .iterations = 1 + draws.below(20),
                               .eps = 1e-6f,
                               .scale = scale,
                               .base = base};
  CheckOutcome outcome = {.actual = std::vector<float>(count),
                          .expected = std::vector<float>(count),
                          .shape = check_shape({{"streams", streams}})};
  const auto run = [&](const StreamKernels& kernels, std::span<float> out) {
    kernels.mix_coefficients(mixing, mixes,
                             {.pre = out.first(streams),
                              .post = out.subspan(streams, streams),
                              .comb = out.subspan(2 * streams)});
  };
  run(table.streams, outcome.actual);
  run(reference_kernels().streams, outcome.expected);
  return outcome;
}

CheckOutcome selection_case(const KernelTable& table, CheckDraws& draws) {
  const std::size_t count = 1 + draws.below(200);
  const std::size_t block = 1 + draws.below(20);
  std::vector<float> scores = draws.values(count);
  scores[draws.below(count)] = -HUGE_VALF;
  scores[draws.below(count)] = std::nanf("");
  const float least = draws.value();
  const ScoreStretch stretch = {.scores = scores, .first = 1000};
  CheckOutcome outcome;
  outcome.shape = check_shape({{"scores", count}, {"in a block", block}});
  const auto run = [&](const SelectionKernels& kernels, std::vector<float>& out) {
    out.resize((count + block - 1) / block);
    kernels.block_maxima(scores, block, out);
    for (float& maximum : out) maximum += 0.0f;  // zeros of either sign are equal
    std::vector<std::uint64_t> ranks(count);
    ranks.resize(kernels.ranks_from(stretch, least, ranks.data()));
    append_exactly(ranks.size(), out);
    for (const std::uint64_t rank : ranks) append_exactly(rank, out);
  };
  run(table.selection, outcome.actual);
  run(reference_kernels().selection, outcome.expected);
  return outcome;
}

constexpr CheckCase kValues[] = {
    {"norm", norm_case},
    {"swiglu", swiglu_case},
    {"rotation", rotation_case},
    {"fp8 quantizer", quantizer_case},
    {"double dots", double_dot_case},
    {"streams", stream_case},
    {"stream coefficients", coefficient_case},
    {"selection", selection_case},
};

}  // namespace

std::span<const CheckCase> value_checks() { return kValues; }

}  // namespace locket::kernels
