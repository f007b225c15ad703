#include "kernels/streams.h"

#include <array>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "kernels/kernel_table.h"
#include "numerics/bf16.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

constexpr std::array kSpreads = {Spread::kUsual, Spread::kTiny, Spread::kHuge, Spread::kDenormal};
constexpr std::array kRoundings = {Rounding::kNone, Rounding::kBf16};

class StreamsTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  const StreamKernels& fast() const { return GetParam()->streams; }
  static const StreamKernels& reference() { return reference_kernels().streams; }
};

bool same_doubles(const std::vector<double>& left, const std::vector<double>& right) {
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (std::isnan(left[i]) && std::isnan(right[i])) continue;
    if (std::bit_cast<std::uint64_t>(left[i]) != std::bit_cast<std::uint64_t>(right[i])) {
      return false;
    }
  }
  return left.size() == right.size();
}

TEST_P(StreamsTest, DoubleDotsHaveTheReferenceBits) {
  for (const Spread spread : kSpreads) {
    for (std::size_t width = 0; width <= 70; ++width) {
      for (std::size_t count = 0; count <= 9; ++count) {
        RandomValues random(static_cast<std::uint32_t>(width * 16 + count));
        const std::vector<float> rows = random.values(count * width + 1, spread);
        const std::vector<float> x = random.values(width + 1, spread);
        const auto odd_rows = std::span<const float>(rows).subspan(1);
        const auto odd_x = std::span<const float>(x).subspan(1);
        std::vector<double> expected(count);
        std::vector<double> actual(count);
        reference().dots_in_double(odd_rows, odd_x, expected);
        fast().dots_in_double(odd_rows, odd_x, actual);
        ASSERT_TRUE(same_doubles(actual, expected)) << width << " x " << count;
      }
    }
  }
}

TEST_P(StreamsTest, CollapseHasTheReferenceBits) {
  for (const Spread spread : kSpreads) {
    for (const Rounding rounding : kRoundings) {
      for (std::size_t hidden = 0; hidden <= 50; ++hidden) {
        const std::size_t streams = 1 + hidden % 9;
        RandomValues random(static_cast<std::uint32_t>(hidden));
        const std::vector<float> values = random.values(streams * hidden, spread);
        const std::vector<float> weights = random.values(streams, spread);
        std::vector<float> expected(hidden);
        std::vector<float> actual(hidden);
        reference().collapse(values, weights, rounding, expected);
        fast().collapse(values, weights, rounding, actual);
        ASSERT_TRUE(same_bits(actual, expected)) << streams << " x " << hidden;
      }
    }
  }
}

TEST_P(StreamsTest, ExpansionHasTheReferenceBits) {
  for (const Spread spread : kSpreads) {
    for (const Rounding rounding : kRoundings) {
      for (std::size_t shape = 0; shape < 510; ++shape) {
        const std::size_t hidden = shape / 10;
        const std::size_t streams = 1 + shape % 10;
        RandomValues random(static_cast<std::uint32_t>(shape));
        const std::vector<float> comb = random.values(streams * streams, Spread::kUsual);
        const std::vector<float> post = random.values(streams, spread);
        const std::vector<float> y = random.values(hidden, spread);
        const StreamExpansion expansion = {
            .comb = comb, .post = post, .y = y, .rounding = rounding};
        std::vector<float> expected = random.values(streams * hidden, spread);
        std::vector<float> actual = expected;
        reference().expand(expansion, expected);
        fast().expand(expansion, actual);
        ASSERT_TRUE(same_bits(actual, expected)) << streams << " x " << hidden;
      }
    }
  }
}

TEST_P(StreamsTest, CoefficientsHaveTheReferenceBits) {
  for (std::uint32_t number = 0; number < 400; ++number) {
    RandomValues random(number);
    const Spread spread = kSpreads[number % kSpreads.size()];
    const std::size_t streams = number % 2 == 0 ? 4 : 1 + random.below(8);
    const std::size_t count = (2 + streams) * streams;
    const std::vector<float> mixes = random.values(count, spread);
    const std::vector<float> base = random.values(count, Spread::kUsual);
    const std::vector<float> scale = random.values(3, Spread::kUsual);
    const StreamMixing mixing = {.streams = streams,
                                 .iterations = 1 + random.below(21),
                                 .eps = 1e-6f,
                                 .scale = scale,
                                 .base = base};
    const auto run = [&](const StreamKernels& kernels) {
      std::vector<float> out(count);
      const std::span<float> all(out);
      kernels.mix_coefficients(mixing, mixes,
                               {.pre = all.first(streams),
                                .post = all.subspan(streams, streams),
                                .comb = all.subspan(2 * streams)});
      return out;
    };
    ASSERT_TRUE(same_bits(run(fast()), run(reference()))) << number;
  }
}

TEST_P(StreamsTest, RoundsEveryUpperHalfAndTieAsTheReferenceDoes) {
  std::vector<float> values;
  for (std::uint32_t upper = 0; upper <= 0xFFFF; ++upper) {
    for (const std::uint32_t lower : {0x0000u, 0x0001u, 0x7FFFu, 0x8000u, 0x8001u, 0xFFFFu}) {
      values.push_back(std::bit_cast<float>(upper << 16 | lower));
    }
  }
  std::vector<float> expected = values;
  reference().round_to_bf16(expected);
  fast().round_to_bf16(values);
  EXPECT_TRUE(same_bits(values, expected));
}

INSTANTIATE_TEST_SUITE_P(EveryTable, StreamsTest, ::testing::ValuesIn(fast_tables()), table_name);

TEST(StreamReferenceTest, SumsLanesAsATree) {
  // 2^53 in lane 0 swallows a one that is added to it, but not two from another lane.
  std::vector<float> x(32, 0.0f);
  const std::vector<float> ones(32, 1.0f);
  x[0] = 0x1p53f;
  x[16] = 1.0f;  // the same lane
  double sum = 0.0;
  dots_in_double(ones, x, {&sum, 1});
  EXPECT_EQ(sum, 0x1p53);
  x[16] = 0.0f;
  x[1] = 1.0f;
  x[9] = 1.0f;  // lane 1 and 9 meet before they meet lane 0
  dots_in_double(ones, x, {&sum, 1});
  EXPECT_EQ(sum, 0x1p53 + 2.0);
}

TEST(StreamReferenceTest, ExpandsAndCollapsesByHand) {
  std::vector<float> streams = {1.0f, 2.0f, 10.0f, 20.0f};  // two streams of two values
  const std::vector<float> comb = {1.0f, 0.5f, 0.0f, 2.0f};
  const std::vector<float> post = {3.0f, 4.0f};
  const std::vector<float> y = {100.0f, 1000.0f};
  expand_streams({.comb = comb, .post = post, .y = y, .rounding = Rounding::kNone}, streams);
  EXPECT_EQ(streams, (std::vector<float>{301.0f, 3002.0f, 420.5f, 4041.0f}));
  std::vector<float> out(2);
  collapse_streams(streams, std::vector<float>{1.0f, 2.0f}, Rounding::kNone, out);
  EXPECT_EQ(out, (std::vector<float>{1142.0f, 11084.0f}));
}

}  // namespace
}  // namespace locket::kernels
