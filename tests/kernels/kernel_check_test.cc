// The check of kernels finds nothing in sound tables, and finds every kind of fault.
#include "kernels/kernel_check.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/kernel_choice.h"
#include "tests/support/kernel_data.h"
#include "tests/support/sanitizer.h"

namespace locket::kernels {
namespace {

constexpr std::size_t kCases = 40;
constexpr std::size_t kFewCases = 8;  // for what is wrong everywhere

// The names of the kernels that differ.
std::vector<std::string> faults_of(const KernelTable& table, std::size_t cases = kCases) {
  std::vector<std::string> names;
  for (const KernelCheck& check : check_kernels(table, cases)) {
    EXPECT_EQ(check.cases, cases);
    EXPECT_EQ(check.different == 0, check.first.empty());
    if (check.different > 0) names.emplace_back(check.kernel);
  }
  return names;
}

// Functions that do what they should, but for one bit of what they write.

void spoil(float& value) { value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ 1u); }

void wrong_product(const WeightMatrix& w, const ActivationRows& x, float* out,
                   std::size_t out_stride, std::size_t first, std::size_t last) {
  reference_kernels().matmul_groups(w, x, out, out_stride, first, last);
  if (last > first) spoil(out[first * 16]);
}

void wrong_attention(const AttentionInput& input, std::span<float> out) {
  reference_kernels().sparse_attention(input, out);
  spoil(out.back());
}

void wrong_index_scores(const IndexScoreInput& input, std::span<float> scores) {
  reference_kernels().index_scores(input, scores);
  spoil(scores.back());
}

void wrong_index_scan(const IndexScan& scan) {
  reference_kernels().index_scan(scan);
  spoil(scan.scores[scan.key_count() - 1]);
}

std::size_t wrong_ranks(const ScoreStretch& stretch, float least, std::uint64_t* ranks) {
  const std::size_t count = reference_kernels().selection.ranks_from(stretch, least, ranks);
  if (count > 0) ranks[count - 1] ^= 1;
  return count;
}

void wrong_maxima(std::span<const float> scores, std::size_t size, std::span<float> maxima) {
  reference_kernels().selection.block_maxima(scores, size, maxima);
  spoil(maxima.back());
}

void wrong_int8_row(std::span<const float> x, const Int8Row& row) {
  reference_kernels().int8.quantize_row(x, row);
  row.group_offsets(int8_groups(x.size()) - 1)[0] ^= 1;
}

void wrong_int8_product(const WeightMatrix& w, const Int8Rows& x, float* out,
                        std::size_t out_stride, std::size_t first, std::size_t last) {
  reference_kernels().int8.matmul_groups(w, x, out, out_stride, first, last);
  if (last > first) spoil(out[first * 16]);
}

void wrong_coarse_sums(const CoarseMatrix& w, const CoarseRows& x, std::size_t first,
                       std::size_t last, std::int64_t* out) {
  reference_kernels().coarse_sums(w, x, first, last, out);
  ++out[x.tokens * (last - first) * kCoarseLanes - 1];
}

void wrong_norm(std::span<const float> x, std::span<const float> weight, float eps,
                Rounding rounding, std::span<float> out) {
  reference_kernels().elementwise.rms_norm(x, weight, eps, rounding, out);
  spoil(out.back());
}

void wrong_swiglu(std::span<const float> gate, std::span<const float> up, const GateShape& shape,
                  std::span<float> out) {
  reference_kernels().elementwise.swiglu(gate, up, shape, out);
  spoil(out.back());
}

void wrong_rotation(std::span<float> pairs, std::span<const float> cos, std::span<const float> sin,
                    RotaryDirection direction, Rounding rounding) {
  reference_kernels().elementwise.rotate_pairs(pairs, cos, sin, direction, rounding);
  spoil(pairs.back());
}

// In place of what rounds values.
void wrong_values(std::span<float> values) { spoil(values.back()); }

void wrong_dots(std::span<const float> rows, std::span<const float> x, std::span<double> sums) {
  reference_kernels().streams.dots_in_double(rows, x, sums);
  sums.back() = std::nextafter(sums.back(), 1.0);
}

void wrong_collapse(std::span<const float> streams, std::span<const float> weights,
                    Rounding rounding, std::span<float> out) {
  reference_kernels().streams.collapse(streams, weights, rounding, out);
  out.back() = -out.back();  // more than what is rounded away afterwards
}

void wrong_expand(const StreamExpansion& expansion, std::span<float> streams) {
  reference_kernels().streams.expand(expansion, streams);
  spoil(streams.back());
}

void wrong_coefficients(const StreamMixing& mixing, std::span<const float> mixes,
                        const StreamCoefficients& out) {
  reference_kernels().streams.mix_coefficients(mixing, mixes, out);
  spoil(out.comb.back());
}

using Names = std::vector<std::string>;

const Names kMatmuls = {"matmul bf16",
                        "matmul fp8",
                        "matmul fp8, float32 scales",
                        "matmul fp4",
                        "matmul f32",
                        "matmul 4 bits, scale and offset",
                        "matmul 8 bits, scale and offset"};

TEST(KernelCheckTest, FindsNothingInTheTablesOfThisMachine) {
  for (const KernelTable* table : available_kernels()) {
    EXPECT_EQ(faults_of(*table), std::vector<std::string>()) << table->name;
  }
}

// With a sanitizer the test above is enough: the same code, on what is sound.
class KernelFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (test_support::runs_with_sanitizer()) GTEST_SKIP() << "the same code once more, for minutes";
  }
};

TEST_F(KernelFaultsTest, FindsAProductInAnotherOrder) {
  KernelTable table = reference_kernels();
  table.matmul_groups = [](const WeightMatrix& w, const ActivationRows& x, float* out,
                           std::size_t out_stride, std::size_t first, std::size_t last) {
    for (std::size_t row = first * 16; row < std::min(last * 16, w.rows); ++row) {
      for (std::size_t token = 0; token < x.tokens; ++token) {
        float sum = 0.0f;
        for (std::size_t k = 0; k < w.columns; ++k) {
          sum += x.data[token * x.stride + k] * weight_at(w, row, k);
        }
        out[token * out_stride + row] = sum;
      }
    }
  };
  const std::vector<std::string> faults = faults_of(table);
  for (const std::string& name : kMatmuls) {
    EXPECT_NE(std::ranges::find(faults, name), faults.end()) << name;
  }
}

TEST_F(KernelFaultsTest, FindsASingleBit) {
  KernelTable table = reference_kernels();
  table.elementwise.rms_norm = [](std::span<const float> x, std::span<const float> weight,
                                  float eps, Rounding rounding, std::span<float> out) {
    reference_kernels().elementwise.rms_norm(x, weight, eps, rounding, out);
    out.back() = std::nextafter(out.back(), 1e30f);
  };
  EXPECT_EQ(faults_of(table), std::vector<std::string>{"norm"});
}

TEST_F(KernelFaultsTest, FindsAKernelThatDoesNothing) {
  KernelTable table = reference_kernels();
  table.streams.round_to_bf16 = [](std::span<float>) {};
  table.elementwise.fake_quantize_fp8 = [](std::span<float>) {};
  table.streams.dots_in_double = [](std::span<const float>, std::span<const float>,
                                    std::span<double>) {};
  EXPECT_EQ(faults_of(table),
            (std::vector<std::string>{"fp8 quantizer", "double dots", "streams"}));
}

TEST_F(KernelFaultsTest, FindsEveryFunctionOfATableThatIsWrong) {
  struct Fault {
    void (*inject)(KernelTable& table);
    Names found;
  };
  const Fault faults[] = {
      {[](KernelTable& t) { t.matmul_groups = wrong_product; }, kMatmuls},
      {[](KernelTable& t) { t.sparse_attention = wrong_attention; }, {"sparse attention"}},
      {[](KernelTable& t) { t.index_scores = wrong_index_scores; }, {"index scores"}},
      {[](KernelTable& t) { t.index_scan = wrong_index_scan; }, {"index scan"}},
      {[](KernelTable& t) { t.selection.ranks_from = wrong_ranks; }, {"selection"}},
      {[](KernelTable& t) { t.selection.block_maxima = wrong_maxima; }, {"selection"}},
      {[](KernelTable& t) { t.int8.quantize_row = wrong_int8_row; }, {"int8 quantizer"}},
      {[](KernelTable& t) { t.int8.matmul_groups = wrong_int8_product; }, {"matmul int8"}},
      {[](KernelTable& t) { t.coarse_sums = wrong_coarse_sums; }, {"coarse sums"}},
      {[](KernelTable& t) { t.elementwise.rms_norm = wrong_norm; }, {"norm"}},
      {[](KernelTable& t) { t.elementwise.swiglu = wrong_swiglu; }, {"swiglu"}},
      {[](KernelTable& t) { t.elementwise.rotate_pairs = wrong_rotation; }, {"rotation"}},
      {[](KernelTable& t) { t.elementwise.fake_quantize_fp8 = wrong_values; }, {"fp8 quantizer"}},
      {[](KernelTable& t) { t.streams.dots_in_double = wrong_dots; }, {"double dots"}},
      {[](KernelTable& t) { t.streams.collapse = wrong_collapse; }, {"streams"}},
      {[](KernelTable& t) { t.streams.expand = wrong_expand; }, {"streams"}},
      {[](KernelTable& t) { t.streams.mix_coefficients = wrong_coefficients; },
       {"stream coefficients"}},
      {[](KernelTable& t) { t.streams.round_to_bf16 = wrong_values; }, {"streams"}},
  };
  // One fault per function: a function that is added to a table needs its line above.
  static_assert(sizeof(KernelTable) ==
                sizeof(std::string_view) + std::size(faults) * sizeof(void (*)()));
  for (const Fault& fault : faults) {
    KernelTable table = reference_kernels();
    fault.inject(table);
    EXPECT_EQ(faults_of(table, kFewCases), fault.found);
  }
}

// Faults as fast kernels have them, in cases that few inputs reach.

TEST_F(KernelFaultsTest, FindsAScanThatTakesTheFirstQueryForAll) {
  KernelTable table = reference_kernels();
  table.index_scan = [](const IndexScan& scan) {
    for (std::size_t q = 0; q < scan.queries.size(); ++q) {
      IndexScan first = scan;
      first.queries = scan.queries.first(1);
      first.scores = scan.scores + q * scan.stride;
      reference_kernels().index_scan(first);
    }
  };
  EXPECT_EQ(faults_of(table), Names{"index scan"});
}

// Spoils the scores of queries that take so many planes of integers, and no others.
template <std::size_t kPlanes>
void wrong_for_planes(const IndexScan& scan) {
  reference_kernels().index_scan(scan);
  for (std::size_t q = 0; q < scan.queries.size(); ++q) {
    if (scan.queries[q].integers.planes == kPlanes) spoil(scan.scores[q * scan.stride]);
  }
}

// Spoils the score of the first key whose scales lie so far apart, of queries in integers.
template <int kLeast, int kMost>
void wrong_for_scales(const IndexScan& scan) {
  reference_kernels().index_scan(scan);
  const KeyRun& run = scan.runs.front();
  if (scan.queries.front().integers.planes == 0 || scan.format != RowFormat::kFp4Index) return;
  const std::size_t bytes = row_bytes(scan.format, scan.queries.front().dim);
  for (std::size_t key = 0; key < run.count; ++key) {
    const auto scales = std::span(run.rows + key * bytes, bytes).last(4);
    const auto [least, most] = std::ranges::minmax(scales);
    const int span = std::to_integer<int>(most) - std::to_integer<int>(least);
    if (span < kLeast || span > kMost) continue;
    spoil(scan.scores[key]);
    return;
  }
}

TEST_F(KernelFaultsTest, ReachesEveryWayOfAScan) {
  for (const auto wrong :
       {wrong_for_planes<0>, wrong_for_planes<1>, wrong_for_planes<2>, wrong_for_scales<0, 3>,
        wrong_for_scales<4, 6>, wrong_for_scales<7, 255>}) {
    KernelTable table = reference_kernels();
    table.index_scan = wrong;
    EXPECT_EQ(faults_of(table), Names{"index scan"});
  }
}

TEST_F(KernelFaultsTest, FindsAScanThatForgetsAllRunsButTheFirst) {
  KernelTable table = reference_kernels();
  table.index_scan = [](const IndexScan& scan) {
    IndexScan first = scan;
    first.runs = scan.runs.first(1);
    reference_kernels().index_scan(first);
  };
  EXPECT_EQ(faults_of(table), Names{"index scan"});
}

TEST_F(KernelFaultsTest, FindsRanksThatLeaveOutEqualScores) {
  KernelTable table = reference_kernels();
  table.selection.ranks_from = [](const ScoreStretch& stretch, float least, std::uint64_t* ranks) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < stretch.scores.size(); ++i) {
      if (!(stretch.scores[i] > least)) continue;
      ranks[count++] = entry_rank(stretch.scores[i], stretch.first + static_cast<std::int32_t>(i));
    }
    return count;
  };
  EXPECT_EQ(faults_of(table), Names{"selection"});
}

TEST_F(KernelFaultsTest, FindsAQuantizerThatLetsInfinitiesPass) {
  KernelTable table = reference_kernels();
  table.int8.quantize_row = [](std::span<const float> x, const Int8Row& row) {
    std::vector<float> finite(x.begin(), x.end());
    for (float& value : finite) {
      if (!std::isfinite(value)) value = 0.0f;
    }
    reference_kernels().int8.quantize_row(finite, row);
  };
  EXPECT_EQ(faults_of(table), Names{"int8 quantizer"});
}

TEST_F(KernelFaultsTest, FindsAnInt8ProductThatForgetsRowGroups) {
  KernelTable table = reference_kernels();
  table.int8.matmul_groups = [](const WeightMatrix& w, const Int8Rows& x, float* out,
                                std::size_t out_stride, std::size_t first, std::size_t last) {
    reference_kernels().int8.matmul_groups(w, x, out, out_stride, first, std::min(last, first + 1));
  };
  EXPECT_EQ(faults_of(table), Names{"matmul int8"});
}

TEST(KernelChoiceTest, FindsTheTablesOfThisMachine) {
  for (const KernelTable* table : available_kernels()) {
    EXPECT_EQ(find_kernels(table->name).value(), table);
    EXPECT_NE(available_kernel_names().find(table->name), std::string::npos);
  }
}

TEST(KernelChoiceTest, SaysWhatCanBeHadInstead) {
  const auto unknown = find_kernels("sse9");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, ErrorCode::kBadRequest);
  EXPECT_NE(unknown.error().message.find("\"sse9\""), std::string::npos);
  EXPECT_NE(unknown.error().message.find(available_kernel_names()), std::string::npos);
}

}  // namespace
}  // namespace locket::kernels
