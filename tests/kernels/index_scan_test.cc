#include "kernels/index_scan.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <vector>

#include "kernels/kernel_table.h"
#include "numerics/fp4_e2m1.h"
#include "tests/support/kernel_data.h"
#include "tests/support/sanitizer.h"

namespace locket::kernels {
namespace {

constexpr std::size_t kDim = 128;
constexpr std::size_t kGroup = 32;

// Scale codes of one key or one head: a base, and how far the groups may lie below it.
struct Scales {
  std::uint32_t base = 124;
  std::uint32_t span = 3;
};

std::uint8_t scale_below(RandomValues& random, const Scales& scales) {
  return static_cast<std::uint8_t>(scales.base - random.below(scales.span + 1));
}

// Stored rows of random codes.
std::vector<std::byte> random_keys(RandomValues& random, std::size_t count, std::size_t dim,
                                   const Scales& scales) {
  std::vector<std::byte> rows;
  for (std::size_t key = 0; key < count; ++key) {
    for (std::size_t i = 0; i < dim / 2; ++i) {
      rows.push_back(static_cast<std::byte>(random.below(256)));
    }
    for (std::size_t group = 0; group < dim / kGroup; ++group) {
      rows.push_back(static_cast<std::byte>(scale_below(random, scales)));
    }
  }
  return rows;
}

// What the quantizer makes of a query: codes times powers of two.
std::vector<float> random_heads(RandomValues& random, std::size_t heads, std::size_t dim,
                                const Scales& scales) {
  std::vector<float> values;
  for (std::size_t i = 0; i < heads * dim / kGroup; ++i) {
    const float scale = std::ldexp(1.0f, static_cast<int>(scale_below(random, scales)) - 127);
    for (std::size_t k = 0; k < kGroup; ++k) {
      const auto code = static_cast<std::uint8_t>(random.below(16));
      values.push_back(numerics::to_float(numerics::Fp4E2m1{code}) * scale);
    }
  }
  return values;
}

// A query with its numbers.
struct OwnedQuery {
  std::vector<float> values;
  std::vector<float> weights;

  IndexQuery view(std::size_t dim = kDim,
                  IndexScoreRounding rounding = IndexScoreRounding::kF32) const {
    return prepare_index_query({.heads = weights.size(),
                                .dim = dim,
                                .values = values,
                                .weights = weights,
                                .rounding = rounding,
                                .integers = {}});
  }
};

OwnedQuery random_query(RandomValues& random, std::size_t heads, const Scales& scales) {
  return {.values = random_heads(random, heads, kDim, scales),
          .weights = random.bf16_values(heads, Spread::kUsual)};
}

std::vector<KeyRun> one_run(std::span<const std::byte> rows, std::size_t count) {
  return {{.rows = rows.data(), .count = count}};
}

class IndexScanTest : public ::testing::TestWithParam<const KernelTable*> {
 protected:
  static std::vector<float> scores_of(const KernelTable& table, const std::vector<KeyRun>& runs,
                                      std::span<const IndexQuery> queries, RowFormat format) {
    IndexScan scan{.format = format, .runs = runs, .queries = queries};
    scan.stride = scan.key_count() + 3;
    std::vector<float> scores(queries.size() * scan.stride, -77.0f);
    scan.scores = scores.data();
    table.index_scan(scan);
    return scores;
  }

  // The places between the scores keep what they held.
  static void expect_same(const std::vector<KeyRun>& runs, std::span<const IndexQuery> queries,
                          RowFormat format = RowFormat::kFp4Index) {
    const std::vector<float> expected = scores_of(reference_kernels(), runs, queries, format);
    const std::vector<float> actual = scores_of(*GetParam(), runs, queries, format);
    ASSERT_TRUE(computes_denormals());
    EXPECT_TRUE(same_bits(actual, expected))
        << queries.size() << " queries of " << queries.front().heads << " heads, " << runs.size()
        << " runs";
  }

  static void expect_same(const std::vector<KeyRun>& runs, const IndexQuery& query,
                          RowFormat format = RowFormat::kFp4Index) {
    expect_same(runs, std::span(&query, 1), format);
  }

  static void expect_same(const Scales& keys, const Scales& heads, std::size_t head_count = 32) {
    RandomValues random(keys.base * 31 + keys.span * 7 + heads.base + heads.span);
    const std::size_t count = test_support::runs_with_sanitizer() ? 72 : 200;  // a block and some
    const std::vector<std::byte> rows = random_keys(random, count, kDim, keys);
    const OwnedQuery query = random_query(random, head_count, heads);
    expect_same(one_run(rows, count), query.view());
  }
};

TEST_P(IndexScanTest, HasTheReferenceBitsForEveryCountOfKeys) {
  RandomValues random(1);
  const std::vector<std::byte> rows = random_keys(random, 330, kDim, {});
  const OwnedQuery query = random_query(random, 4, {});
  for (std::size_t count = 0; count <= 330; count += count < 140 ? 1 : 17) {
    // Exactly the bytes of the rows: no kernel reads behind them.
    const std::vector<std::byte> part(rows.begin(),
                                      rows.begin() + static_cast<std::ptrdiff_t>(count * 68));
    expect_same(one_run(part, count), query.view());
  }
}

TEST_P(IndexScanTest, HasTheReferenceBitsForEveryCountOfHeads) {
  for (std::size_t heads = 1; heads <= 70; ++heads) expect_same({}, {}, heads);
}

TEST_P(IndexScanTest, HasTheReferenceBitsForAnySpanOfScales) {
  for (std::uint32_t keys = 0; keys <= 9; ++keys) {
    for (std::uint32_t heads = 0; heads <= 9; ++heads) {
      expect_same({.base = 124, .span = keys}, {.base = 126, .span = heads}, 5);
    }
  }
}

TEST_P(IndexScanTest, HasTheReferenceBitsForExtremeScales) {
  for (const std::uint32_t keys :
       {9u, 30u, 45u, 60u, 71u, 72u, 75u, 80u, 156u, 157u, 158u, 200u, 255u}) {
    for (const std::uint32_t heads : {9u, 70u, 80u, 90u, 160u, 168u, 200u, 250u}) {
      expect_same({.base = keys, .span = 2}, {.base = heads, .span = 2}, 5);
      expect_same({.base = keys, .span = 6}, {.base = heads, .span = 0}, 5);
      expect_same({.base = keys, .span = 0}, {.base = heads, .span = 6}, 5);
    }
  }
}

TEST_P(IndexScanTest, HasTheReferenceBitsForExtremeWeights) {
  RandomValues random(5);
  const std::vector<std::byte> rows = random_keys(random, 100, kDim, {});
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (const float weight : {0.0f, -0.0f, 0x1p-149f, 0x1p-126f, 0x1p-60f, 0x1p-30f, 0x1p60f,
                             0x1.fffffep127f, kInfinity, std::nanf("")}) {
    for (const float sign : {1.0f, -1.0f}) {
      OwnedQuery query = random_query(random, 3, {});
      query.weights[1] = std::copysign(weight, sign);
      expect_same(one_run(rows, 100), query.view());
      query.weights.assign(3, std::copysign(weight, sign));
      expect_same(one_run(rows, 100), query.view());
    }
  }
}

TEST_P(IndexScanTest, HasTheReferenceBitsWhereTheSmallestTermsAreDenormal) {
  for (std::uint32_t base = 66; base < 90; ++base) {
    RandomValues random(base);
    const std::vector<std::byte> rows = random_keys(random, 100, kDim, {.base = base, .span = 6});
    for (const float weight : {0x1p-80f, 0x1p-60f, 0x1p-39f, 0x1p-20f}) {
      OwnedQuery query = random_query(random, 9, {.base = 130, .span = 3});
      for (float& value : query.weights) value = std::copysign(weight * 1.5f, value);
      expect_same(one_run(rows, 100), query.view());
    }
  }
}

// Largest numbers of both sides, all of one sign: the integer sums are as large as they become.
TEST_P(IndexScanTest, HasTheReferenceBitsForTheLargestSums) {
  for (const std::uint8_t code : {std::uint8_t{7}, std::uint8_t{15}}) {
    for (const unsigned below : {0u, 3u, 6u}) {
      std::vector<std::byte> rows(kDim / 2, static_cast<std::byte>(code | code << 4));
      rows.insert(rows.end(), 3, std::byte{124});
      rows.push_back(static_cast<std::byte>(124 - below));
      OwnedQuery query{.values = std::vector<float>(kDim, 6.0f), .weights = {1.25f}};
      for (const float last : {6.0f, 0.75f, 0.0625f, -6.0f}) {
        query.values.back() = last;
        expect_same(one_run(rows, 1), query.view());
      }
    }
  }
}

TEST_P(IndexScanTest, HasTheReferenceBitsForSomeOddKeysAmongOthers) {
  RandomValues random(8);
  std::vector<std::byte> rows = random_keys(random, 300, kDim, {.base = 124, .span = 2});
  for (const auto& [key, group, code] : {std::tuple{5, 0, 110},
                                         {5, 1, 255},
                                         {70, 3, 1},
                                         {71, 2, 119},
                                         {200, 1, 118},
                                         {299, 0, 0},
                                         {130, 2, 254}}) {
    rows[static_cast<std::size_t>(key * 68 + 64 + group)] = static_cast<std::byte>(code);
  }
  std::fill_n(rows.begin() + 220 * 68, 64, std::byte{0});  // a key of zeros, and of their scales
  std::fill_n(rows.begin() + 220 * 68 + 64, 4, std::byte{1});
  for (const std::uint32_t span : {2u, 5u}) {
    const OwnedQuery query = random_query(random, 33, {.base = 125, .span = span});
    expect_same(one_run(rows, 300), query.view());
  }
}

TEST_P(IndexScanTest, HasTheReferenceBitsForAnyCutIntoRuns) {
  RandomValues random(9);
  const std::vector<std::byte> rows = random_keys(random, 1500, kDim, {.base = 124, .span = 4});
  const OwnedQuery query = random_query(random, 5, {});
  for (const std::uint32_t longest : {1u, 3u, 8u, 64u, 65u, 128u, 400u}) {
    std::vector<KeyRun> runs;
    for (std::size_t at = 0; at + longest < 1500;) {
      const std::size_t count = longest == 8 || longest == 64 ? longest : random.below(longest + 1);
      runs.push_back({.rows = rows.data() + at * 68, .count = count});
      at += count + random.below(2);
    }
    expect_same(runs, query.view());
  }
}

TEST_P(IndexScanTest, HasTheReferenceBitsForManyQueriesOfEveryKind) {
  RandomValues random(10);
  const std::vector<std::byte> rows = random_keys(random, 700, kDim, {.base = 124, .span = 4});
  std::vector<OwnedQuery> owned;
  for (const std::uint32_t span : {3u, 3u, 6u, 0u, 9u, 3u, 12u}) {
    owned.push_back(random_query(random, 6, {.base = 126, .span = span}));
  }
  owned[3].values[7] = 1.0f + 0x1p-20f;
  owned[5].values[100] = std::nanf("");
  std::vector<IndexQuery> queries;
  for (const OwnedQuery& query : owned) queries.push_back(query.view());
  queries.push_back(owned[0].view(kDim, IndexScoreRounding::kBf16));
  queries.push_back(owned[1].view());
  expect_same(one_run(rows, 700), std::span(queries));
}

TEST_P(IndexScanTest, HasTheReferenceBitsForOtherDimensionsAndFormats) {
  for (const std::size_t dim : {32, 64, 96, 160, 256}) {
    RandomValues random(static_cast<std::uint32_t>(dim));
    const OwnedQuery query = {.values = random_heads(random, 4, dim, {}),
                              .weights = random.bf16_values(4, Spread::kUsual)};
    for (const auto rounding : {IndexScoreRounding::kF32, IndexScoreRounding::kBf16}) {
      expect_same(one_run(random_keys(random, 90, dim, {}), 90), query.view(dim, rounding));
    }
  }
  // Float32 rows at an odd address.
  RandomValues random(3);
  const std::vector<float> keys = random.values(90 * kDim, Spread::kUsual);
  std::vector<std::byte> bytes(1 + keys.size() * sizeof(float));
  std::copy_n(std::as_bytes(std::span(keys)).begin(), bytes.size() - 1, bytes.begin() + 1);
  const OwnedQuery query = random_query(random, 7, {});
  expect_same({{.rows = bytes.data() + 1, .count = 90}}, query.view(), RowFormat::kF32);
}

INSTANTIATE_TEST_SUITE_P(Tables, IndexScanTest, ::testing::ValuesIn(fast_tables()), table_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(IndexScanTest);

TEST(IndexQueryTest, CodesOfFourGroupsBecomeNumbers) {
  RandomValues random(1);
  EXPECT_EQ(random_query(random, 32, {.base = 126, .span = 3}).view().integers.planes, 1U);
  EXPECT_EQ(random_query(random, 32, {.base = 126, .span = 6}).view().integers.planes, 2U);
  EXPECT_EQ(random_query(random, 32, {.base = 126, .span = 20}).view().integers.planes, 0U);
}

TEST(IndexQueryTest, OneValueOfMoreBitsKeepsItsHeadAsItIs) {
  RandomValues random(2);
  OwnedQuery query = random_query(random, 2, {});
  query.values[200] = 1.0f + 0x1p-11f;
  EXPECT_EQ(query.view().integers.planes, 0U);
}

TEST(IndexQueryTest, ZerosNeedNoUnit) {
  const OwnedQuery query{.values = std::vector<float>(kDim, -0.0f), .weights = {1e-44f}};
  const IndexQuery prepared = query.view();
  EXPECT_EQ(prepared.integers.planes, 1U);
  EXPECT_EQ(prepared.integers.factors[0], 0.0f);
}

TEST(IndexScanReferenceTest, DecodesRowsAndScoresThem) {
  RandomValues random(4);
  const std::vector<std::byte> rows = random_keys(random, 5, 64, {});
  std::vector<float> keys(5 * 64);
  for (std::size_t j = 0; j < 5; ++j) {
    decode_row(RowFormat::kFp4Index, std::span(rows).subspan(j * 34, 34),
               std::span(keys).subspan(j * 64, 64));
  }
  const OwnedQuery query = {.values = random_heads(random, 3, 64, {}),
                            .weights = {0.5f, -0.25f, 2.0f}};
  const IndexQuery view = query.view(64);
  std::vector<float> expected(5);
  reference_kernels().index_scores(
      {.heads = 3, .dim = 64, .query = query.values, .weights = query.weights, .keys = keys},
      expected);
  const std::vector<KeyRun> runs = {{.rows = rows.data(), .count = 2},
                                    {.rows = rows.data() + 68, .count = 3}};
  std::vector<float> scores(5);
  reference_kernels().index_scan(
      {.runs = runs, .queries = {&view, 1}, .scores = scores.data(), .stride = 5});
  EXPECT_TRUE(same_bits(scores, expected));
}

}  // namespace
}  // namespace locket::kernels
