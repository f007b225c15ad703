#include "model/block_compressor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "tests/model/mechanism_inputs.h"

namespace locket::model {
namespace {

using Overlap = BlockCompressorConfig::Overlap;
using Spread = BlockCompressorConfig::Spread;

constexpr std::size_t kHidden = 24;
constexpr std::size_t kWidth = 16;
constexpr std::size_t kRope = 6;
constexpr std::size_t kTokens = 4;
constexpr std::int64_t kRoom = 256;
constexpr std::byte kUntouched = std::byte{0xA5};

BlockCompressorConfig config_of(Overlap overlap, Spread spread = Spread::kNone) {
  return {.tokens = kTokens,
          .width = kWidth,
          .rope_dim = kRope,
          .norm_eps = 1e-6f,
          .overlap = overlap,
          .spread = spread};
}

BlockCompressorWeights weights_of(const BlockCompressorConfig& config) {
  return {.wkv = random_weights(1, config.token_width(), kHidden),
          .wgate = random_weights(2, config.token_width(), kHidden),
          .ape = random_floats(3, config.tokens * config.token_width()),
          .norm = random_floats(4, config.width)};
}

cache::KvLayout layout_of(const BlockCompressorConfig& config) {
  return {.streams = {{.name = "rows",
                       .layer = 0,
                       .tokens_per_row = static_cast<std::int64_t>(config.tokens),
                       .row_bytes = config.width * sizeof(float)}},
          .rings = {{.layer = 0,
                     .slots = static_cast<std::int64_t>(config.tokens),
                     .row_bytes = block_ring_bytes(config) + 8}}};
}

// A sequence of its own: memory, open block, and where it stands.
class Sequence {
 public:
  explicit Sequence(const BlockCompressorConfig& config)
      : config_(config), memory_(layout_of(config), kRoom), view_(memory_.view()) {
    for (std::int64_t row = 0; row < view_.row_capacity(0); ++row) {
      std::ranges::fill(view_.row(0, row), kUntouched);
    }
  }

  StepPart next(std::size_t count, std::int64_t write_from = 0) {
    StepPart part = {
        .memory = &view_, .first_position = position_, .count = count, .write_from = write_from};
    position_ += static_cast<std::int64_t>(count);
    return part;
  }
  void start_at(std::int64_t position) { position_ = position; }
  PendingGroup& pending() { return pending_; }

  bool is_untouched(std::int64_t row) const {
    return std::ranges::all_of(view_.row(0, row), [](std::byte b) { return b == kUntouched; });
  }
  std::vector<float> row(std::int64_t number) const {
    std::vector<float> values(config_.width);
    std::memcpy(values.data(), view_.row(0, number).data(), config_.width * sizeof(float));
    return values;
  }
  std::vector<std::vector<float>> rows(std::int64_t first, std::int64_t last) const {
    std::vector<std::vector<float>> all;
    for (std::int64_t number = first; number < last; ++number) all.push_back(row(number));
    return all;
  }
  void copy_memory(const Sequence& other, std::int64_t rows) {
    for (std::int64_t number = 0; number < rows; ++number) {
      std::ranges::copy(other.view_.row(0, number), view_.row(0, number).begin());
    }
  }
  void copy_ring(const Sequence& other) {
    for (std::int64_t slot = 0; slot < static_cast<std::int64_t>(config_.tokens); ++slot) {
      std::ranges::copy(other.view_.ring_slot(0, slot), view_.ring_slot(0, slot).begin());
    }
  }

 private:
  BlockCompressorConfig config_;
  TestMemory memory_;
  cache::KvView view_;
  PendingGroup pending_;
  std::int64_t position_ = 0;
};

class BlockCompressorTest : public ::testing::TestWithParam<Overlap> {
 protected:
  void run(const BlockCompressorConfig& config, const tensor::FloatMatrix& u,
           std::vector<StepPart> parts, std::vector<PendingGroup*> pending) {
    const Step step(std::move(parts), {});
    const BlockPlace place = {
        .stream = 0, .format = kernels::RowFormat::kF32, .ring = 0, .ring_offset = 8};
    compress_blocks(test_.context, config, weights_of(config), place,
                    {.u = u, .pending = pending, .frequencies = frequencies_, .step = step});
  }

  // The next tokens of one sequence, whose positions are those of rows of `all`.
  void feed(Sequence& sequence, const tensor::FloatMatrix& all, std::int64_t first,
            std::int64_t last, std::int64_t write_from = 0) {
    run(config_of(GetParam()),
        rows_of(all, static_cast<std::size_t>(first), static_cast<std::size_t>(last)),
        {sequence.next(static_cast<std::size_t>(last - first), write_from)}, {&sequence.pending()});
  }

  TestContext test_{NumericsMode::kPlain, 2};
  std::vector<float> frequencies_ = rotary_frequencies({.dim = kRope, .base = 100.0});
};

// One row by its definition, in double.
std::vector<double> defined_row(const BlockCompressorConfig& config, const tensor::FloatMatrix& u,
                                std::size_t block, const std::vector<float>& frequencies) {
  const std::size_t token_width = config.token_width();
  const BlockCompressorWeights weights = weights_of(config);
  const auto product = [&](const kernels::WeightMatrix& w, std::size_t token, std::size_t k) {
    double sum = 0;
    for (std::size_t i = 0; i < kHidden; ++i) {
      sum += static_cast<double>(u.row(token)[i]) * static_cast<double>(weight_at(w, k, i));
    }
    return sum;
  };
  std::vector<double> row(config.width);
  for (std::size_t k = 0; k < config.width; ++k) {
    double numerator = 0;
    double denominator = 0;
    const auto add = [&](std::size_t token, std::size_t channel) {
      const double gate =
          product(weights.wgate, token, channel) +
          static_cast<double>(weights.ape[token % config.tokens * token_width + channel]);
      numerator += std::exp(gate) * product(weights.wkv, token, channel);
      denominator += std::exp(gate);
    };
    for (std::size_t token = 0; token < config.tokens; ++token) {
      if (config.overlap == Overlap::kBlockBefore && block > 0) {
        add((block - 1) * config.tokens + token, k);
      }
      add(block * config.tokens + token, token_width - config.width + k);
    }
    row[k] = numerator / denominator;
  }
  double squares = 0;
  for (const double value : row) squares += value * value;
  const double factor = 1.0 / std::sqrt(squares / static_cast<double>(config.width) + 1e-6);
  for (std::size_t k = 0; k < config.width; ++k) {
    row[k] *= factor * static_cast<double>(weights.norm[k]);
  }
  const auto position = static_cast<double>(block * config.tokens);
  for (std::size_t pair = 0; pair < kRope / 2; ++pair) {
    const double angle = position * static_cast<double>(frequencies[pair]);
    double& a = row[config.width - kRope + 2 * pair];
    double& b = row[config.width - kRope + 2 * pair + 1];
    const double rotated = a * std::cos(angle) - b * std::sin(angle);
    b = a * std::sin(angle) + b * std::cos(angle);
    a = rotated;
  }
  return row;
}

TEST_P(BlockCompressorTest, RowsAreWhatTheirDefinitionSays) {
  const tensor::FloatMatrix u = random_matrix(11, 23, kHidden);
  Sequence sequence(config_of(GetParam()));
  feed(sequence, u, 0, 23);
  for (std::size_t block = 0; block < 5; ++block) {
    const std::vector<double> expected = defined_row(config_of(GetParam()), u, block, frequencies_);
    const std::vector<float> row = sequence.row(static_cast<std::int64_t>(block));
    for (std::size_t k = 0; k < kWidth; ++k) {
      EXPECT_NEAR(row[k], expected[k], 2e-5) << "block " << block << " value " << k;
    }
  }
  EXPECT_TRUE(sequence.is_untouched(5)) << "its block is open";
  EXPECT_EQ(sequence.pending().tokens(config_of(GetParam()).token_width()), 3U);
}

TEST_P(BlockCompressorTest, AnyCutGivesTheSameRows) {
  const tensor::FloatMatrix u = random_matrix(12, 61, kHidden);
  Sequence whole(config_of(GetParam()));
  feed(whole, u, 0, 61);
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    Sequence cut(config_of(GetParam()));
    for (std::int64_t first = 0; first < 61;) {
      const std::int64_t last = std::min<std::int64_t>(61, first + 1 + random() % 11);
      feed(cut, u, first, last);
      first = last;
    }
    EXPECT_EQ(cut.rows(0, 15), whole.rows(0, 15));
  }
}

// Tokens whose rows are there leave no row behind, but the first row that is written needs them.
TEST_P(BlockCompressorTest, AReplayWritesOnlyWhatIsMissing) {
  const tensor::FloatMatrix u = random_matrix(13, 61, kHidden);
  Sequence whole(config_of(GetParam()));
  feed(whole, u, 0, 61);
  std::mt19937 random(4);
  for (const std::int64_t write_from : {4, 24, 28, 56}) {
    for (int round = 0; round < 20; ++round) {
      Sequence replayed(config_of(GetParam()));
      const std::int64_t start = 4 * (static_cast<std::int64_t>(random()) % (write_from / 4));
      replayed.start_at(start);
      for (std::int64_t first = start; first < 61;) {
        const std::int64_t last = std::min<std::int64_t>(61, first + 1 + random() % 13);
        feed(replayed, u, first, last, write_from);
        first = last;
      }
      EXPECT_EQ(replayed.rows(write_from / 4, 15), whole.rows(write_from / 4, 15))
          << "from " << write_from << ", start " << start;
      for (std::int64_t row = 0; row < write_from / 4; ++row) {
        EXPECT_TRUE(replayed.is_untouched(row)) << row;
      }
    }
  }
}

// A restored ring is all that is needed to go on where rows begin to be missing.
TEST_P(BlockCompressorTest, GoesOnFromARingThatWasKept) {
  const tensor::FloatMatrix u = random_matrix(14, 61, kHidden);
  Sequence whole(config_of(GetParam()));
  feed(whole, u, 0, 32);
  Sequence resumed(config_of(GetParam()));
  resumed.copy_ring(whole);
  resumed.start_at(32);
  feed(whole, u, 32, 61);
  feed(resumed, u, 32, 61, 32);
  EXPECT_EQ(resumed.rows(8, 15), whole.rows(8, 15));
}

// A ring that is kept while rows are still stored ahead of it is right, too.
TEST_P(BlockCompressorTest, KeepsTheRingOfEveryEndOfAStep) {
  const tensor::FloatMatrix u = random_matrix(15, 61, kHidden);
  Sequence whole(config_of(GetParam()));
  feed(whole, u, 0, 61);
  Sequence replayed(config_of(GetParam()));
  feed(replayed, u, 0, 32, 48);
  Sequence resumed(config_of(GetParam()));
  resumed.copy_ring(replayed);
  resumed.start_at(32);
  feed(resumed, u, 32, 61, 32);
  EXPECT_EQ(resumed.rows(8, 15), whole.rows(8, 15));
}

TEST_P(BlockCompressorTest, SequencesOfAStepDoNotMeet) {
  const BlockCompressorConfig config = config_of(GetParam());
  const tensor::FloatMatrix first = random_matrix(16, 20, kHidden);
  const tensor::FloatMatrix second = random_matrix(17, 30, kHidden);
  Sequence alone(config);
  Sequence other_alone(config);
  feed(alone, first, 0, 20);
  feed(other_alone, second, 0, 30);
  Sequence one(config);
  Sequence failed(config);
  Sequence other(config);
  tensor::FloatMatrix u(20 + 5 + 30, kHidden);
  std::ranges::copy(first.values(), u.values().begin());
  std::ranges::copy(second.values(), u.values().begin() + 25 * kHidden);
  StepPart broken = failed.next(5);
  broken.status = fail(ErrorCode::kBadMemory, "rows are lost");
  run(config, u, {one.next(20), broken, other.next(30)},
      {&one.pending(), &failed.pending(), &other.pending()});
  EXPECT_EQ(one.rows(0, 5), alone.rows(0, 5));
  EXPECT_EQ(other.rows(0, 7), other_alone.rows(0, 7));
  EXPECT_TRUE(failed.is_untouched(0));
}

TEST_P(BlockCompressorTest, SpreadRowsHaveTheSameProducts) {
  const tensor::FloatMatrix u = random_matrix(18, 8, kHidden);
  Sequence plain(config_of(GetParam()));
  Sequence spread(config_of(GetParam()));
  run(config_of(GetParam()), u, {plain.next(8)}, {&plain.pending()});
  run(config_of(GetParam(), Spread::kHadamard), u, {spread.next(8)}, {&spread.pending()});
  const auto product = [](const std::vector<float>& a, const std::vector<float>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum;
  };
  EXPECT_NE(plain.row(0), spread.row(0));
  EXPECT_NEAR(product(plain.row(0), plain.row(1)), product(spread.row(0), spread.row(1)), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(Overlaps, BlockCompressorTest,
                         ::testing::Values(Overlap::kNone, Overlap::kBlockBefore),
                         [](const auto& instance) {
                           return instance.param == Overlap::kNone ? "Apart" : "Overlapping";
                         });

}  // namespace
}  // namespace locket::model
