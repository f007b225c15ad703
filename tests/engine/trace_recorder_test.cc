#include "engine/trace_recorder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

#include "base/worker_pool.h"
#include "cache/page_pool.h"
#include "engine/session.h"
#include "tests/support/tiny_models.h"

namespace locket::engine {
namespace {

using test_support::random_ids;
using ::testing::ElementsAre;

using Place = model::ForwardObserver::Place;

TEST(TraceRecorderTest, EveryKindHasAName) {
  std::set<std::string_view> names;
  for (int i = 0; i < static_cast<int>(TraceKind::kCount); ++i) {
    EXPECT_TRUE(names.insert(trace_kind_name(static_cast<TraceKind>(i))).second);
  }
  EXPECT_TRUE(names.contains("rows"));
}

TEST(TraceRecorderTest, JoinsTheCallsOfAPlace) {
  TraceRecorder recorder({TraceKind::kLogits, TraceKind::kStreams, TraceKind::kIndex}, 2);
  const std::vector<float> six = {1, 2, 3, 4, 5, 6};
  recorder.on_floats({.name = "logits", .first_position = 4, .width = 3}, six);
  recorder.on_floats({.name = "logits", .first_position = 6, .width = 3}, std::span(six).first(3));
  recorder.on_floats({.name = "streams", .layer = 1, .first_position = 0, .width = 6}, six);
  recorder.on_integers({.name = "index", .layer = 3, .first_position = 9, .width = 2},
                       std::vector<std::int32_t>{7, -1});
  ASSERT_EQ(recorder.tensors().size(), 3U);
  const TraceTensor& logits = recorder.tensors().at("logits");
  EXPECT_EQ(logits.first_position, 4);
  EXPECT_THAT(logits.shape, ElementsAre(3, 3));
  EXPECT_THAT(logits.floats, ElementsAre(1, 2, 3, 4, 5, 6, 1, 2, 3));
  EXPECT_TRUE(logits.integers.empty());
  EXPECT_THAT(recorder.tensors().at("layer.1.streams").shape, ElementsAre(1, 2, 3));
  const TraceTensor& index = recorder.tensors().at("index.3.rows");
  EXPECT_THAT(index.integers, ElementsAre(7, -1));
  EXPECT_EQ(index.first_position, 9);
}

TEST(TraceRecorderTest, LeavesOutWhatNobodyAskedFor) {
  TraceRecorder recorder({TraceKind::kLogits}, 2);
  recorder.on_floats({.name = "streams", .layer = 1, .width = 2}, std::vector<float>{1, 2});
  recorder.on_floats({.name = "something new", .layer = 1, .width = 2}, std::vector<float>{1, 2});
  recorder.on_integers({.name = "experts", .layer = 1, .width = 1}, std::vector<std::int32_t>{3});
  EXPECT_TRUE(recorder.tensors().empty());
}

TEST(TraceRecorderDeathTest, AGapInThePositionsIsAFault) {
  TraceRecorder recorder({TraceKind::kLogits}, 2);
  recorder.on_floats({.name = "logits", .first_position = 0, .width = 1}, std::vector<float>{1, 2});
  EXPECT_DEATH(recorder.on_floats({.name = "logits", .first_position = 3, .width = 1},
                                  std::vector<float>{1}),
               "check failed");
}

// Everything that a run of 20 tokens in three slices shows, by name and shape.
TEST(TraceRecorderTest, RecordsAWholeRun) {
  const model::V41Model& model = test_support::tiny_model("odd", model::NumericsMode::kReference);
  std::set<TraceKind> kinds;
  for (int i = 0; i < static_cast<int>(TraceKind::kCount); ++i) {
    kinds.insert(static_cast<TraceKind>(i));
  }
  TraceRecorder recorder(kinds, 3);
  WorkerPool workers(1);
  cache::PagePool pool(model.memory().layout.page_bytes(), std::uint64_t{1} << 24);
  Session session(model, pool, workers, {.slice_tokens = 8, .observer = &recorder});
  ASSERT_TRUE(session.prefill(random_ids(1, 19, 437)));
  ASSERT_TRUE(session.append(5));
  const auto& tensors = recorder.tensors();
  const auto expect_shape = [&](const std::string& name, std::int64_t first,
                                const tensor::Shape& shape) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(tensors.contains(name));
    EXPECT_EQ(tensors.at(name).first_position, first);
    EXPECT_EQ(tensors.at(name).shape, shape);
  };
  expect_shape("embed.streams", 0, {20, 3, 96});
  // The window is 7: the decoder, layers 4 to 6, begins at position 12.
  for (std::int64_t layer = 0; layer < 7; ++layer) {
    const std::int64_t first = layer < 4 ? 0 : 12;
    const std::int64_t count = 20 - first;
    const std::string number = std::to_string(layer);
    expect_shape("layer." + number + ".streams", first, {count, 3, 96});
    expect_shape("layer." + number + ".pre", first, {count, 3});
    expect_shape("layer." + number + ".attention", first, {count, 96});
    expect_shape("layer." + number + ".attention_input", first, {count, 96});
    expect_shape("layer." + number + ".moe", first, {count, 96});
    expect_shape("layer." + number + ".moe_input", first, {count, 96});
    expect_shape("router." + number + ".experts", first, {count, 2});
    expect_shape("router." + number + ".weights", first, {count, 2});
    expect_shape("window." + number + ".rows", first, {count, 96});
  }
  for (const std::int64_t layer : {1, 3, 4, 5}) {
    expect_shape("index." + std::to_string(layer) + ".rows", layer < 4 ? 0 : 12,
                 {layer < 4 ? 20 : 8, 3});
  }
  EXPECT_FALSE(tensors.contains("index.2.rows")) << "it uses the selection of layer 1";
  expect_shape("index.4.pool", 12, {8, 3});
  expect_shape("logits", 12, {8, 437});
}

}  // namespace
}  // namespace locket::engine
