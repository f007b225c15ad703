// Latent attention against its expanded form in double: keys and values of every head made from the
// latents of all positions. With an indexer, against the choice by the formulas.
#include "model/mla_attention.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <gtest/gtest.h>
#include <numeric>
#include <vector>

#include "kernels/row_codec.h"
#include "model/generations/mla_weights.h"
#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

constexpr std::size_t kHidden = 40;
constexpr std::size_t kLora = 24;
constexpr std::size_t kHeads = 20;  // more than kernels take at a time
constexpr std::size_t kNope = 12;
constexpr std::size_t kRope = 8;
constexpr std::size_t kValue = 10;
constexpr std::size_t kRank = 48;
constexpr std::size_t kIndexHeads = 3;
constexpr std::size_t kIndexDim = 16;
constexpr std::size_t kTokens = 150;  // over two pages
constexpr float kScale = 0.3f;
constexpr double kNormEps = 1e-6;

using Vector = std::vector<double>;
using Ids = std::vector<std::int32_t>;

enum class Queries { kLatent, kStraight };

MlaConfig config_of(std::size_t topk) {
  MlaConfig config = {.heads = kHeads,
                      .nope_dim = kNope,
                      .rope_dim = kRope,
                      .value_dim = kValue,
                      .latent_rank = kRank,
                      .norm_eps = static_cast<float>(kNormEps),
                      .softmax_scale = kScale};
  if (topk > 0) {
    config.indexer =
        DsaIndexerConfig{.heads = kIndexHeads, .dim = kIndexDim, .rope_dim = kRope, .topk = topk};
  }
  return config;
}

// The weights, and the projections of all heads that they were made from.
struct Weights {
  MlaWeights mla;
  kernels::WeightMatrix projections;
};

Weights weights_of(const MlaConfig& config, Queries queries) {
  Weights weights;
  MlaWeights& mla = weights.mla;
  const std::size_t width = kHeads * config.query_dim();
  if (queries == Queries::kLatent) {
    mla.q_a = random_weights(1, kLora, kHidden);
    mla.q_norm = random_floats(2, kLora);
  }
  mla.q_b = random_weights(3, width, queries == Queries::kLatent ? kLora : kHidden);
  mla.kv_a = random_weights(4, config.row_width(), kHidden);
  mla.kv_norm = random_floats(5, kRank);
  weights.projections = random_weights(6, kHeads * (kNope + kValue), kRank);
  EXPECT_TRUE(split_heads(weights.projections, config, mla));
  mla.output = random_weights(7, kHidden, kHeads * kValue);
  mla.indexer = {.wq_b = random_weights(8, kIndexHeads * kIndexDim, kLora),
                 .wk = random_weights(9, kIndexDim, kHidden),
                 .key_norm = random_floats(10, kIndexDim),
                 .key_norm_bias = random_floats(11, kIndexDim),
                 .head_weights = random_weights(12, kIndexHeads, kHidden)};
  return weights;
}

Vector to_doubles(std::span<const float> values) { return {values.begin(), values.end()}; }

Vector times(const kernels::WeightMatrix& matrix, const Vector& x, std::size_t first = 0,
             std::size_t count = 0) {
  Vector y(count == 0 ? matrix.rows : count);
  for (std::size_t row = 0; row < y.size(); ++row) {
    for (std::size_t column = 0; column < matrix.columns; ++column) {
      y[row] += static_cast<double>(kernels::weight_at(matrix, first + row, column)) * x[column];
    }
  }
  return y;
}

Vector normed(Vector x, const std::vector<float>& weight) {
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  const double rms = std::sqrt(squares / static_cast<double>(x.size()) + kNormEps);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] *= static_cast<double>(weight[i]) / rms;
  return x;
}

RotaryTable table(std::int64_t first, std::size_t count) {
  return rotary_table(rotary_frequencies({.dim = kRope, .base = 10.0}),
                      positions_from(first, 1, count));
}

// Pairs (first + step * i, first + step * i + distance).
void turn(Vector& x, const RotaryTable& angles, std::size_t position, std::size_t first,
          std::size_t step, std::size_t distance) {
  for (std::size_t pair = 0; pair < kRope / 2; ++pair) {
    double& a = x[first + step * pair];
    double& b = x[first + step * pair + distance];
    const std::complex<double> turned =
        std::complex(a, b) * std::complex(static_cast<double>(angles.cos.row(position)[pair]),
                                          static_cast<double>(angles.sin.row(position)[pair]));
    a = turned.real();
    b = turned.imag();
  }
}

void turn_neighbours(Vector& x, const RotaryTable& angles, std::size_t position,
                     std::size_t first) {
  turn(x, angles, position, first, 2, 1);
}

double dot(const Vector& a, const Vector& b, std::size_t first_a = 0) {
  double sum = 0.0;
  for (std::size_t i = 0; i < b.size(); ++i) sum += a[first_a + i] * b[i];
  return sum;
}

// One layer over kTokens positions of one or two sequences.
class MlaCase {
 public:
  explicit MlaCase(std::size_t topk = 0, Queries queries = Queries::kLatent,
                   NumericsMode mode = NumericsMode::kPlain)
      : config_(config_of(topk)),
        weights_(weights_of(config_, queries)),
        mode_(mode),
        formats_(mode == NumericsMode::kPlain
                     ? MemoryFormats{kernels::RowFormat::kF32, kernels::RowFormat::kF32,
                                     kernels::RowFormat::kF32}
                     : MemoryFormats{kernels::RowFormat::kMlaFp8, kernels::RowFormat::kFp8Index,
                                     kernels::RowFormat::kF32}),
        u_(random_matrix(20, kTokens, kHidden)),
        memory_({.streams = {{.name = "latents",
                              .row_bytes = row_bytes(formats_.rows, config_.row_width())},
                             {.name = "index keys",
                              .row_bytes = row_bytes(formats_.index_keys, kIndexDim),
                              .part = cache::PagePart::kKeys}},
                 .rings = {}},
                kTokens) {}

  // Positions from `first` on, in steps; the outputs are kept.
  void run(const std::vector<std::size_t>& steps, std::size_t threads, std::int64_t write_from = 0,
           std::size_t first = 0) {
    TestContext test(mode_, threads);
    out_ = tensor::FloatMatrix(kTokens, kHidden);
    chosen_.assign(kTokens, {});
    const cache::KvView view = memory_.view();
    for (const std::size_t count : steps) {
      Step step({{.memory = &view,
                  .first_position = static_cast<std::int64_t>(first),
                  .count = count,
                  .write_from = write_from}},
                formats_);
      step.plain_rotary = table(step.first_position(), count);
      const tensor::FloatMatrix part =
          mla_attention(test.context, config_, weights_.mla, rows_of(u_, first, first + count),
                        {.rows = 0, .index_keys = 1}, step);
      for (std::size_t i = 0; i < count; ++i) {
        std::ranges::copy(part.row(i), out_.row(first + i).begin());
        if (config_.indexer) chosen_[first + i] = step.selection.rows[i];
      }
      first += count;
    }
  }

  const tensor::FloatMatrix& out() const { return out_; }
  const std::vector<Ids>& chosen() const { return chosen_; }
  cache::KvView view() { return memory_.view(); }

  std::vector<std::byte> stored() {
    std::vector<std::byte> bytes;
    for (std::size_t stream = 0; stream < 2; ++stream) {
      for (std::size_t token = 0; token < kTokens; ++token) {
        const auto row = view().row(stream, static_cast<std::int64_t>(token));
        bytes.insert(bytes.end(), row.begin(), row.end());
      }
    }
    return bytes;
  }

  // The output of a position by the expanded form over `tokens`.
  Vector expanded(std::size_t position, const Ids& tokens) const {
    const RotaryTable angles = table(0, kTokens);
    const MlaWeights& mla = weights_.mla;
    Vector query = times(mla.q_b, query_input(position));
    Vector joined;
    for (std::size_t head = 0; head < kHeads; ++head) {
      const std::size_t at = head * config_.query_dim();
      turn_neighbours(query, angles, position, at + kNope);
      double denominator = 0.0;
      Vector out(kValue);
      for (const std::int32_t token : tokens) {
        const auto [key, value] = key_and_value(static_cast<std::size_t>(token), head, angles);
        const double weight = std::exp(dot(query, key, at) * static_cast<double>(kScale));
        denominator += weight;
        for (std::size_t i = 0; i < kValue; ++i) out[i] += weight * value[i];
      }
      for (const double value : out) joined.push_back(value / denominator);
    }
    return times(mla.output, joined);
  }

  // Scores of the tokens up to `position`.
  Vector index_scores(std::size_t position) const {
    const RotaryTable angles = table(0, kTokens);
    const DsaIndexerWeights& indexer = weights_.mla.indexer;
    const Vector head_weights = times(indexer.head_weights, to_doubles(u_.row(position)));
    Vector queries = times(indexer.wq_b, query_input(position));
    for (std::size_t head = 0; head < kIndexHeads; ++head) {
      turn(queries, angles, position, head * kIndexDim, 1, kRope / 2);
    }
    Vector scores;
    for (std::size_t token = 0; token <= position; ++token) {
      const Vector key = index_key(token, angles);
      double score = 0.0;
      for (std::size_t head = 0; head < kIndexHeads; ++head) {
        score += head_weights[head] * std::max(0.0, dot(queries, key, head * kIndexDim));
      }
      scores.push_back(score);
    }
    return scores;
  }

 private:
  Vector query_input(std::size_t position) const {
    const Vector u = to_doubles(u_.row(position));
    const MlaWeights& mla = weights_.mla;
    return mla.q_a.rows == 0 ? u : normed(times(mla.q_a, u), mla.q_norm);
  }

  std::pair<Vector, Vector> key_and_value(std::size_t token, std::size_t head,
                                          const RotaryTable& angles) const {
    Vector row = times(weights_.mla.kv_a, to_doubles(u_.row(token)));
    turn_neighbours(row, angles, token, kRank);
    const Vector latent = normed(Vector(row.begin(), row.begin() + kRank), weights_.mla.kv_norm);
    const std::size_t first = head * (kNope + kValue);
    Vector key = times(weights_.projections, latent, first, kNope);
    key.insert(key.end(), row.begin() + kRank, row.end());
    return {key, times(weights_.projections, latent, first + kNope, kValue)};
  }

  Vector index_key(std::size_t token, const RotaryTable& angles) const {
    const DsaIndexerWeights& indexer = weights_.mla.indexer;
    Vector key = times(indexer.wk, to_doubles(u_.row(token)));
    const double mean = std::accumulate(key.begin(), key.end(), 0.0) / kIndexDim;
    double squares = 0.0;
    for (double& value : key) {
      value -= mean;
      squares += value * value;
    }
    for (std::size_t i = 0; i < kIndexDim; ++i) {
      key[i] = key[i] / std::sqrt(squares / kIndexDim + 1e-6) *
                   static_cast<double>(indexer.key_norm[i]) +
               static_cast<double>(indexer.key_norm_bias[i]);
    }
    turn(key, angles, token, 0, 1, kRope / 2);
    return key;
  }

  MlaConfig config_;
  Weights weights_;
  NumericsMode mode_;
  MemoryFormats formats_;
  tensor::FloatMatrix u_;
  TestMemory memory_;
  tensor::FloatMatrix out_;
  std::vector<Ids> chosen_;
};

Ids all_up_to(std::size_t position) {
  Ids tokens(position + 1);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

constexpr std::size_t kChecked[] = {0, 1, 17, 63, 64, 127, 128, 149};

void expect_near(std::span<const float> actual, const Vector& expected) {
  double distance = 0.0;
  double length = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    distance += std::pow(static_cast<double>(actual[i]) - expected[i], 2);
    length += expected[i] * expected[i];
  }
  EXPECT_LE(std::sqrt(distance / length), 3e-6);
}

TEST(MlaAttentionTest, TheAbsorbedFormIsTheExpandedOne) {
  for (const Queries queries : {Queries::kLatent, Queries::kStraight}) {
    MlaCase mla(0, queries);
    mla.run({kTokens}, 1);
    for (const std::size_t position : kChecked) {
      SCOPED_TRACE(position);
      expect_near(mla.out().row(position), mla.expanded(position, all_up_to(position)));
    }
  }
}

TEST(MlaAttentionTest, AnIndexerThatTakesAllChangesNothing) {
  MlaCase dense;
  dense.run({kTokens}, 1);
  MlaCase indexed(kTokens);
  indexed.run({kTokens}, 1);
  EXPECT_TRUE(std::ranges::equal(dense.out().values(), indexed.out().values()));
}

// The best by the formulas in double; where the last one in and the first one out are too near to
// tell, the choice is not compared.
TEST(MlaAttentionTest, TheIndexerChoosesTheBestAndOnlyTheyAreRead) {
  constexpr std::size_t kTopk = 20;
  MlaCase mla(kTopk);
  mla.run({kTokens}, 1);
  std::size_t compared = 0;
  for (const std::size_t position : kChecked) {
    SCOPED_TRACE(position);
    Ids expected = all_up_to(position);
    if (expected.size() > kTopk) {
      const Vector scores = mla.index_scores(position);
      std::ranges::sort(expected, [&](std::int32_t a, std::int32_t b) {
        return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
      });
      const double gap = scores[static_cast<std::size_t>(expected[kTopk - 1])] -
                         scores[static_cast<std::size_t>(expected[kTopk])];
      if (gap < 1e-4) continue;
      ++compared;
      expected.resize(kTopk);
      std::ranges::sort(expected);
    }
    EXPECT_EQ(mla.chosen()[position], expected);
    expect_near(mla.out().row(position), mla.expanded(position, expected));
  }
  EXPECT_GE(compared, 3U);
}

TEST(MlaAttentionTest, StepsAndThreadsChangeNoBit) {
  for (const NumericsMode mode : {NumericsMode::kPlain, NumericsMode::kWide}) {
    for (const std::size_t topk : {0, 20}) {
      MlaCase whole(topk, Queries::kLatent, mode);
      whole.run({kTokens}, 1);
      for (const std::size_t threads : {1, 2, 3, 7}) {
        MlaCase parts(topk, Queries::kLatent, mode);
        parts.run({1, 63, 2, 64, 1, 1, 18}, threads);
        EXPECT_TRUE(std::ranges::equal(whole.out().values(), parts.out().values()));
        EXPECT_EQ(whole.stored(), parts.stored());
        EXPECT_EQ(whole.chosen(), parts.chosen());
      }
    }
  }
}

// Rows that are there are not written again.
TEST(MlaAttentionTest, StoredRowsStayAsTheyAre) {
  MlaCase cold(20, Queries::kLatent, NumericsMode::kWide);
  cold.run({kTokens}, 1);
  const std::vector<std::byte> stored = cold.stored();
  const tensor::FloatMatrix expected = cold.out();
  cold.run({kTokens - 100}, 2, kTokens - 10, 100);
  EXPECT_EQ(cold.stored(), stored);
  for (std::size_t position = 100; position < kTokens; ++position) {
    EXPECT_TRUE(std::ranges::equal(cold.out().row(position), expected.row(position)));
  }
}

// They are read, also by the positions that they belong to: another row shows.
TEST(MlaAttentionTest, StoredRowsAreReadByTheirOwnPositions) {
  MlaCase cold(0, Queries::kLatent, NumericsMode::kWide);
  cold.run({kTokens}, 1);
  const tensor::FloatMatrix expected = cold.out();
  const cache::KvView view = cold.view();
  std::ranges::copy(view.row(0, 4), view.row(0, 120).begin());
  cold.run({kTokens - 100}, 2, kTokens - 10, 100);
  EXPECT_TRUE(std::ranges::equal(cold.out().row(119), expected.row(119)));
  EXPECT_FALSE(std::ranges::equal(cold.out().row(120), expected.row(120)));
}

// A sequence that failed writes and reads nothing; the other one of the step does not notice.
TEST(MlaAttentionTest, SequencesOfAStepDoNotTouchEachOther) {
  for (const std::size_t topk : {0, 5}) {
    const MlaConfig config = config_of(topk);
    const Weights weights = weights_of(config, Queries::kLatent);
    const tensor::FloatMatrix u = random_matrix(30, 40, kHidden);
    const cache::KvLayout layout = {
        .streams = {{.name = "latents", .row_bytes = config.row_width() * sizeof(float)},
                    {.name = "index keys",
                     .row_bytes = kIndexDim * sizeof(float),
                     .part = cache::PagePart::kKeys}},
        .rings = {}};
    const auto run = [&](bool fails) {
      TestContext test(NumericsMode::kPlain, 2);
      TestMemory first(layout, 20);
      TestMemory second(layout, 20);
      const cache::KvView views[] = {first.view(), second.view()};
      Step step({{.memory = &views[0], .first_position = 0, .count = 20},
                 {.memory = &views[1], .first_position = 0, .count = 20}},
                {kernels::RowFormat::kF32, kernels::RowFormat::kF32, kernels::RowFormat::kF32});
      if (fails) step.parts[0].status = fail(ErrorCode::kBadMemory, "lost");
      const std::vector<std::int64_t> first_positions = positions_from(0, 1, 20);
      std::vector<std::int64_t> positions = first_positions;
      positions.insert(positions.end(), first_positions.begin(), first_positions.end());
      step.plain_rotary = rotary_table(rotary_frequencies({.dim = kRope, .base = 10.0}), positions);
      return rows_of(
          mla_attention(test.context, config, weights.mla, u, {.rows = 0, .index_keys = 1}, step),
          20, 40);
    };
    EXPECT_TRUE(std::ranges::equal(run(false).values(), run(true).values()));
  }
}

}  // namespace
}  // namespace locket::model
