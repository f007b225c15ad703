// Attention over rows of which key and value are parts, in the formats of every generation, against
// the reference and against a softmax in double.
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <list>
#include <vector>

#include "kernels/kernel_table.h"
#include "kernels/sparse_attention.h"
#include "tests/support/kernel_data.h"

namespace locket::kernels {
namespace {

struct Layout {
  std::size_t heads;
  std::size_t key;  // dims of the query
  std::size_t row;  // values of a row
  std::size_t value_first;
  std::size_t value_dim;
  std::size_t slots = 70;
};

enum class Sink { kNone, kSome };

// A query and rows of one format, every fifth slot of which is empty.
class Case {
 public:
  Case(const Layout& layout, RowFormat format, std::uint32_t seed) : layout_(layout) {
    RandomValues random(seed);
    query_ = random.values(layout.heads * layout.key, Spread::kUsual);
    sink_ = random.values(layout.heads, Spread::kUsual);
    for (std::size_t slot = 0; slot < layout.slots; ++slot) {
      std::vector<std::byte>& bytes = bytes_.emplace_back(row_bytes(format, layout.row));
      encode_row(format, random.values(layout.row, Spread::kUsual), bytes);
      std::vector<float>& decoded = decoded_.emplace_back(layout.row);
      decode_row(format, bytes, decoded);
      slots_.push_back({.bytes = random.below(5) == 0 ? nullptr : bytes.data(), .format = format});
    }
  }

  AttentionInput input(Sink sink, Rounding rounding = Rounding::kNone) const {
    return {.heads = layout_.heads,
            .head_dim = layout_.key,
            .scale = 1.0f / std::sqrt(static_cast<float>(layout_.key)),
            .query = query_,
            .rows = slots_,
            .sink = sink == Sink::kSome ? std::span<const float>(sink_) : std::span<const float>(),
            .rounding = rounding,
            .row_width = layout_.row,
            .value_first = layout_.value_first,
            .value_dim = layout_.value_dim};
  }

  // Of one head, in double.
  std::vector<double> exact(std::size_t head, Sink sink) const {
    const float scale = input(sink).scale;
    std::vector<double> sums(layout_.value_dim, 0.0);
    double denominator = sink == Sink::kSome ? std::exp(static_cast<double>(sink_[head])) : 0.0;
    for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot].empty()) continue;
      double dot = 0.0;
      for (std::size_t i = 0; i < layout_.key; ++i) {
        dot += static_cast<double>(query_[head * layout_.key + i]) *
               static_cast<double>(decoded_[slot][i]);
      }
      const double weight = std::exp(dot * static_cast<double>(scale));
      denominator += weight;
      for (std::size_t i = 0; i < sums.size(); ++i) {
        sums[i] += weight * static_cast<double>(decoded_[slot][layout_.value_first + i]);
      }
    }
    for (double& sum : sums) sum /= denominator;
    return sums;
  }

 private:
  Layout layout_;
  std::vector<float> query_;
  std::vector<float> sink_;
  std::list<std::vector<std::byte>> bytes_;
  std::vector<std::vector<float>> decoded_;
  std::vector<AttentionRow> slots_;
};

// Latents with a rotated key behind them, key and value beside each other, and odd shapes: keys and
// values that share a block of 32, begin and end inside of one, or leave values out.
const std::vector<Layout>& layouts() {
  static const std::vector<Layout> all = {
      {16, 576, 576, 0, 512, 40}, {20, 144, 144, 0, 128}, {4, 80, 80, 0, 64},
      {8, 128, 256, 128, 128},    {2, 16, 32, 16, 16},    {1, 24, 48, 24, 24},
      {3, 7, 20, 5, 11},          {2, 33, 64, 31, 33},    {5, 64, 96, 32, 64},
      {2, 32, 65, 64, 1},         {1, 1, 2, 1, 1},        {3, 40, 200, 100, 90},
      {4, 512, 512, 0, 512},      {8, 96, 96, 0, 96}};
  return all;
}

constexpr RowFormat kLayoutFormats[] = {RowFormat::kF32, RowFormat::kBf16, RowFormat::kMlaFp8,
                                        RowFormat::kFp8Index, RowFormat::kV4Fp8};

class AttentionLayoutTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  void expect_same(const AttentionInput& input) {
    const std::size_t size = input.heads * input.out_dim();
    std::vector<float> expected(size, -1.0f);
    std::vector<float> actual(size + 1, -2.0f);
    reference_kernels().sparse_attention(input, expected);
    GetParam()->sparse_attention(input, std::span(actual).subspan(1));
    ASSERT_TRUE(computes_denormals());
    EXPECT_TRUE(same_bits(std::span<const float>(actual).subspan(1), expected));
  }
};

TEST_P(AttentionLayoutTest, HasTheReferenceBitsForEveryLayoutAndFormat) {
  std::uint32_t seed = 1;
  for (const Layout& layout : layouts()) {
    for (const RowFormat format : kLayoutFormats) {
      const Case values(layout, format, ++seed);
      SCOPED_TRACE(::testing::Message()
                   << "format " << static_cast<int>(format) << ", row of " << layout.row << ", key "
                   << layout.key << ", values " << layout.value_first << " + " << layout.value_dim);
      for (const Sink sink : {Sink::kNone, Sink::kSome}) {
        expect_same(values.input(sink, Rounding::kNone));
        expect_same(values.input(sink, Rounding::kBf16));
      }
    }
  }
}

TEST_P(AttentionLayoutTest, HasTheReferenceBitsForEveryCountOfSlots) {
  for (std::size_t slots = 0; slots <= 200; slots += slots < 70 ? 1 : 13) {
    const Layout layout = {3, 48, 112, 48, 64, slots};
    const Case values(layout, RowFormat::kBf16, static_cast<std::uint32_t>(slots));
    expect_same(values.input(Sink::kNone));
  }
}

// What is behind the key must not reach the scores, even if it is no number.
TEST_P(AttentionLayoutTest, ValuesBehindTheKeyDoNotTouchTheScores) {
  std::vector<float> rows = {1.0f, 2.0f, HUGE_VALF, 5.0f, 1.0f, -2.0f, NAN, 7.0f};
  const std::vector<float> query = {0.5f, 0.25f};
  const std::vector<AttentionRow> slots = float_slots(rows, 4, std::vector<std::uint8_t>{1, 1});
  std::vector<float> out(1);
  GetParam()->sparse_attention({.heads = 1,
                                .head_dim = 2,
                                .query = query,
                                .rows = slots,
                                .sink = {},
                                .row_width = 4,
                                .value_first = 3,
                                .value_dim = 1},
                               out);
  const float weight = std::exp(-1.0f);  // of the second row, whose score is 1 less
  EXPECT_NEAR(out[0], (5.0f + 7.0f * weight) / (1.0f + weight), 1e-6f);
}

TEST_P(AttentionLayoutTest, WithoutRowsAndSinkThereIsZero) {
  const std::vector<float> query(32, 1.0f);
  const std::vector<AttentionRow> slots(70);
  for (const std::size_t count : {std::size_t{0}, slots.size()}) {
    std::vector<float> out(16, 3.0f);
    GetParam()->sparse_attention({.heads = 1,
                                  .head_dim = 32,
                                  .query = query,
                                  .rows = std::span(slots).first(count),
                                  .sink = {},
                                  .value_dim = 16},
                                 out);
    EXPECT_EQ(out, std::vector<float>(16, 0.0f));
  }
}

INSTANTIATE_TEST_SUITE_P(Tables, AttentionLayoutTest, ::testing::ValuesIn(fast_tables()),
                         table_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AttentionLayoutTest);

void expect_softmax(const Layout& layout, const Case& values, Sink sink) {
  std::vector<float> out(layout.heads * layout.value_dim);
  reference_kernels().sparse_attention(values.input(sink), out);
  for (std::size_t head = 0; head < layout.heads; ++head) {
    const std::vector<double> expected = values.exact(head, sink);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(static_cast<double>(out[head * layout.value_dim + i]), expected[i],
                  1e-4 * (1.0 + std::abs(expected[i])));
    }
  }
}

TEST(AttentionLayoutReferenceTest, AgreesWithASoftmaxInDouble) {
  std::uint32_t seed = 100;
  for (const Layout& layout : layouts()) {
    const Case values(layout, RowFormat::kBf16, ++seed);
    expect_softmax(layout, values, Sink::kNone);
    expect_softmax(layout, values, Sink::kSome);
  }
}

}  // namespace
}  // namespace locket::kernels
