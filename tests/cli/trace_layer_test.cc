// locket trace --layer: one layer alone, fed with a trace of the whole model, gives the bits of
// that trace.
#include <fmt/format.h>
#include <limits>

#include "checkpoint/safetensors_writer.h"
#include "tests/cli/trace_cases.h"

namespace locket::cli {
namespace {

struct TinyModel {
  std::string name;
  std::uint32_t vocabulary;
  std::int64_t layers;
};

// Longer than windows, choices and pools are.
constexpr std::size_t kCount = 41;

class TraceLayerTest : public testing::TestWithParam<std::tuple<TinyModel, std::string>> {};

TEST_P(TraceLayerTest, GivesTheBitsOfTheWholeModel) {
  const auto& [model, mode] = GetParam();
  const TraceRunner runner(tiny_folder(model.name), kCount, model.vocabulary);
  const Trace whole = runner.trace({"--replay", "full", "--mode", mode, "--what",
                                    "streams,attention,moe,rows,window,index,router"},
                                   "whole.safetensors");
  for (std::int64_t layer = 0; layer < model.layers; ++layer) {
    SCOPED_TRACE(fmt::format("layer {}", layer));
    const Trace one = runner.trace({"--layer", std::to_string(layer), "--mode", mode, "--from",
                                    (runner.folder() / "whole.safetensors").string()});
    for (const char* part :
         {"streams", "pre", "attention", "attention_input", "moe", "moe_input"}) {
      EXPECT_TRUE(one.contains(fmt::format("layer.{}.{}", layer, part))) << part;
    }
    for (const char* name : {"window.{}.rows", "router.{}.experts", "router.{}.weights"}) {
      EXPECT_TRUE(one.contains(fmt::format(fmt::runtime(name), layer))) << name;
    }
    for (const auto& [name, tensor] : one) {
      ASSERT_TRUE(whole.contains(name)) << name;
      EXPECT_TRUE(tensor == whole.at(name)) << name << " differs";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    TinyModels, TraceLayerTest,
    testing::Combine(testing::Values(TinyModel{"micro", 480, 10}, TinyModel{"odd", 437, 7}),
                     testing::Values("reference", "wide")),
    [](const auto& row) { return std::get<0>(row.param).name + "_" + std::get<1>(row.param); });

// Layer 7 of micro reads rows of layer 6 and reuses its choice; layer 8 chooses from its pool.
class TraceLayerInputTest : public testing::Test {
 protected:
  void SetUp() override {
    whole_ =
        runner_.trace({"--replay", "full", "--what", "streams,rows,index"}, "whole.safetensors");
  }

  test_support::ProgramResult run_layer(int layer, const Trace& inputs) const {
    std::vector<checkpoint::NamedTensor> tensors;
    for (const auto& [name, tensor] : inputs) {
      tensors.push_back({.name = name,
                         .view = {.dtype = tensor.dtype,
                                  .shape = tensor.shape,
                                  .bytes = std::as_bytes(std::span(tensor.bytes))}});
    }
    const std::filesystem::path path = runner_.folder() / "inputs.safetensors";
    EXPECT_TRUE(checkpoint::write_safetensors(path, tensors).has_value());
    return runner_.run({"--layer", std::to_string(layer), "--from", path.string()});
  }

  template <class Number>
  static void set_value(TracedTensor& tensor, std::size_t index, Number value) {
    std::memcpy(tensor.bytes.data() + index * sizeof(value), &value, sizeof(value));
  }

  TraceRunner runner_{tiny_folder("micro"), kCount, 480};
  Trace whole_;
};

TEST_F(TraceLayerInputTest, NeedsOnlyWhatItsHeadCommentLists) {
  Trace inputs;
  for (const char* name : {"layer.6.streams", "layer.6.pre", "kv.6.rows", "index.6.rows"}) {
    inputs[name] = whole_.at(name);
  }
  EXPECT_EQ(run_layer(7, inputs).exit_code, 0);
  for (const auto& [name, tensor] : inputs) {
    Trace less = inputs;
    less.erase(name);
    expect_failure(run_layer(7, less),
                   {"not_found", "no tensor " + name, "--what", "--replay full"});
  }
}

TEST_F(TraceLayerInputTest, RefusesTensorsOfAnotherShapeOrType) {
  Trace inputs = whole_;
  inputs["kv.6.rows"].shape = {64, static_cast<std::int64_t>(kCount)};
  expect_failure(run_layer(7, inputs), {"kv.6.rows", "F32 [64, 41]", "F32 [41, 64]"});
  inputs = whole_;
  inputs["index.6.rows"].dtype = numerics::Dtype::kF32;
  expect_failure(run_layer(7, inputs), {"index.6.rows", "F32", "I32"});
}

TEST_F(TraceLayerInputTest, RefusesATraceOfFewerPositions) {
  runner_.trace({"--what", "streams,rows,index"}, "bounded.safetensors");
  expect_failure(
      runner_.run({"--layer", "7", "--from", (runner_.folder() / "bounded.safetensors").string()}),
      {"layer.6.streams", "[16, 4, 128]", "[41, 4, 128]", "--replay full"});
}

TEST_F(TraceLayerInputTest, RefusesRowsThatThePositionCannotSee) {
  for (const std::int32_t row : {41, -2, std::numeric_limits<std::int32_t>::max()}) {
    Trace inputs = whole_;
    set_value(inputs["index.6.rows"], 40 * 8, row);
    expect_failure(run_layer(7, inputs), {"index.6.rows", "position 40", std::to_string(row)});
  }
  Trace inputs = whole_;
  set_value(inputs["index.6.rows"], 0, 1);
  expect_failure(run_layer(7, inputs), {"index.6.rows", "position 0"});
  inputs = whole_;
  set_value(inputs["index.6.pool"], 40 * 4, 11);
  expect_failure(run_layer(8, inputs), {"index.6.pool", "position 40", "0 to 10"});
}

TEST_F(TraceLayerInputTest, RefusesARowTwice) {
  Trace inputs = whole_;
  const std::int32_t second = integers_of(inputs["index.6.rows"])[40 * 8 + 1];
  set_value(inputs["index.6.rows"], 40 * 8, second);
  expect_failure(run_layer(7, inputs), {"index.6.rows", "position 40", "different"});
}

TEST_F(TraceLayerInputTest, RefusesNumbersThatAreNotFinite) {
  for (const char* name : {"layer.6.streams", "layer.6.pre", "kv.6.rows"}) {
    Trace inputs = whole_;
    set_value(inputs[name], 3, std::numeric_limits<float>::quiet_NaN());
    expect_failure(run_layer(7, inputs), {name, "value 3 is nan"});
  }
}

// Sums of such numbers overflow, and NaN goes through every choice of rows and experts.
TEST_F(TraceLayerInputTest, SurvivesTheLargestNumbers) {
  Trace inputs = whole_;
  for (auto& [name, tensor] : inputs) {
    if (tensor.dtype != numerics::Dtype::kF32) continue;
    for (std::size_t i = 0; i < tensor.bytes.size() / sizeof(float); ++i) {
      set_value(tensor, i, i % 3 == 0 ? -3e38F : 3e38F);
    }
  }
  for (int layer = 0; layer < 10; ++layer) {
    EXPECT_EQ(run_layer(layer, inputs).exit_code, 0) << layer;
  }
}

TEST_F(TraceLayerInputTest, RefusesLayersAndFilesThatAreNotThere) {
  expect_failure(run_layer(10, whole_), {"--layer 10", "0 to 9"});
  expect_failure(runner_.run({"--layer", "7", "--from", "/nowhere"}), {"not_found", "/nowhere"});
  const std::string ids = (runner_.folder() / "ids.json").string();
  expect_failure(runner_.run({"--layer", "7", "--from", ids}), {"bad_checkpoint", ids});
}

TEST_F(TraceLayerInputTest, ChecksIdsAsTheWholeModelDoes) {
  const std::string from = (runner_.folder() / "whole.safetensors").string();
  expect_failure(TraceRunner(tiny_folder("micro"), "[480]").run({"--layer", "0", "--from", from}),
                 {"token 0 is id 480"});
  expect_failure(TraceRunner(tiny_folder("micro"), "[]").run({"--layer", "0", "--from", from}),
                 {"empty"});
}

}  // namespace
}  // namespace locket::cli
