// The two halves of the model by themselves: they may be cut into calls differently, and the
// decoder may run long after the encoder.
#include "model/generations/v41.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "tests/model/mechanism_inputs.h"
#include "tests/support/tiny_models.h"

namespace locket::model {
namespace {

using test_support::RunBits;

using Cuts = std::vector<std::size_t>;

class V41Test : public ::testing::TestWithParam<std::string> {
 protected:
  static constexpr std::size_t kCount = 90;

  V41Test()
      : model_(test_support::tiny_model(GetParam(), NumericsMode::kReference)),
        ids_(test_support::random_ids(5, kCount, model_.config().vocabulary_size)),
        memory_(model_.memory().layout, kCount),
        context_(model_.make_context(workers_)) {}

  Step make_step(const cache::KvView& view, std::size_t first, std::size_t count,
                 std::size_t start) const {
    return model_.make_step({{.memory = &view,
                              .tokens = std::span(ids_).first(first + count),
                              .first_position = static_cast<std::int64_t>(first),
                              .count = count,
                              .segment_start = static_cast<std::int64_t>(start)}});
  }

  // The whole sequence through the encoder.
  ResidualRows encode(const Cuts& cuts) {
    const std::size_t width =
        static_cast<std::size_t>(model_.config().hidden_size * model_.config().stream_count);
    ResidualRows all = {.streams = {kCount, width},
                        .pre = {kCount, static_cast<std::size_t>(model_.config().stream_count)}};
    SequenceState state = model_.make_state();
    std::size_t first = 0;
    for (const std::size_t count : cuts) {
      const cache::KvView view = memory_.view();
      Step step = make_step(view, first, count, 0);
      SequenceState* const states[] = {&state};
      const ResidualRows part = model_.encode(context_, step, states);
      EXPECT_TRUE(step.parts.front().status);
      EXPECT_EQ(part.count(), count);
      for (std::size_t i = 0; i < count; ++i) {
        std::ranges::copy(part.streams.row(i), all.streams.row(first + i).begin());
        std::ranges::copy(part.pre.row(i), all.pre.row(first + i).begin());
      }
      first += count;
    }
    EXPECT_EQ(first, kCount);
    return all;
  }

  // Logits of `rows` from `start` on through the decoder.
  std::vector<std::vector<float>> decode(const ResidualRows& rows, const Cuts& cuts,
                                         std::size_t start) {
    std::vector<std::vector<float>> logits;
    std::size_t first = start;
    for (const std::size_t count : cuts) {
      ResidualRows part = {.streams = rows_of(rows.streams, first, first + count),
                           .pre = rows_of(rows.pre, first, first + count)};
      const cache::KvView view = memory_.view();
      Step step = make_step(view, first, count, start);
      model_.decode(context_, step, part);
      EXPECT_TRUE(step.parts.front().status);
      const tensor::FloatMatrix values = model_.logits(context_, part);
      for (std::size_t i = 0; i < count; ++i) {
        logits.emplace_back(values.row(i).begin(), values.row(i).end());
      }
      first += count;
    }
    EXPECT_EQ(first, kCount);
    return logits;
  }

  const V41Model& model_;
  std::vector<engine::TokenId> ids_;
  WorkerPool workers_{1};
  TestMemory memory_;
  ForwardContext context_;
};

// All rows of the sequence are in the memory before the decoder begins: no position may read rows
// that complete after it.
TEST_P(V41Test, TheDecoderMayRunAfterTheWholeEncoder) {
  const RunBits expected = test_support::run_sequence(model_, ids_, {});
  const ResidualRows rows = encode({kCount});
  EXPECT_EQ(decode(rows, {kCount}, 0), expected.logits);
  EXPECT_EQ(decode(rows, {1, 1, 30, 58}, 0), expected.logits);
}

TEST_P(V41Test, EncoderAndDecoderMayBeCutDifferently) {
  const RunBits expected = test_support::run_sequence(model_, ids_, {});
  const ResidualRows rows = encode({3, 1, 40, 41, 5});
  EXPECT_EQ(decode(rows, {50, 7, 33}, 0), expected.logits);
  EXPECT_EQ(decode(rows, Cuts(kCount, 1), 0), expected.logits);
}

TEST_P(V41Test, TheDecoderMayStartAnywhere) {
  const ResidualRows rows = encode({64, 26});
  const std::vector<std::vector<float>> whole = decode(rows, {12}, kCount - 12);
  EXPECT_EQ(decode(rows, {1, 4, 7}, kCount - 12), whole);
  EXPECT_NE(decode(rows, {kCount}, 0).back(), whole.back()) << "the start must matter";
}

TEST_P(V41Test, LogitsOfTheLastRowsAlone) {
  ResidualRows rows = encode({kCount});
  const cache::KvView view = memory_.view();
  Step step = make_step(view, 0, kCount, 0);
  model_.decode(context_, step, rows);
  ASSERT_TRUE(step.parts.front().status);
  const tensor::FloatMatrix all = model_.logits(context_, rows);
  const std::size_t wanted[] = {kCount - 2, kCount - 1};
  const tensor::FloatMatrix last = model_.logits(context_, pick_rows(rows, wanted));
  ASSERT_EQ(last.rows(), 2U);
  EXPECT_TRUE(std::ranges::equal(last.values(), all.values().last(2 * all.columns())));
}

INSTANTIATE_TEST_SUITE_P(TinyCheckpoints, V41Test, ::testing::Values("micro", "odd"),
                         [](const auto& test_case) { return test_case.param; });

}  // namespace
}  // namespace locket::model
