// locket trace as a process: what it writes, and that nothing depends on how the ids were fed.
#include <fmt/format.h>
#include <numeric>

#include "base/worker_pool.h"
#include "engine/engine.h"
#include "service/loaded_model.h"
#include "tests/cli/trace_cases.h"

namespace locket::cli {
namespace {

using numerics::Dtype;
using tensor::Shape;

// micro: 480 ids, 10 layers of width 128 with 4 streams, window 16. Layers 2, 4 (a row per 2
// tokens) and 6 (the first of the decoder, a row per token) write rows; 2, 4, 6 and 8 choose.
constexpr std::uint32_t kVocabulary = 480;
constexpr std::int64_t kCount = 41;
constexpr std::int64_t kWindow = 16;
constexpr std::int64_t kLayers = 10;
constexpr std::int64_t kBoundary = 6;
constexpr const char* kEverything = "logits,streams,attention,moe,rows,window,index,router";

TraceRunner micro_runner() {
  return {tiny_folder("micro"), static_cast<std::size_t>(kCount), kVocabulary};
}

struct Expected {
  Dtype dtype;
  Shape shape;
};
using Table = std::map<std::string, Expected>;

void expect_shapes(const Trace& trace, const Table& table) {
  std::set<std::string> names = {"positions"};
  for (const auto& [name, expected] : table) names.insert(name);
  EXPECT_EQ(names_of(trace), names);
  for (const auto& [name, expected] : table) {
    const auto found = trace.find(name);
    if (found == trace.end()) continue;
    EXPECT_EQ(found->second.dtype, expected.dtype) << name;
    EXPECT_EQ(found->second.shape, expected.shape) << name;
  }
}

std::vector<std::int32_t> range(std::int64_t first, std::int64_t end) {
  std::vector<std::int32_t> values(static_cast<std::size_t>(end - first));
  std::iota(values.begin(), values.end(), static_cast<std::int32_t>(first));
  return values;
}

// Positions that a layer runs over.
std::int64_t positions_of(std::int64_t layer, std::int64_t decoder_positions) {
  return layer < kBoundary ? kCount : decoder_positions;
}

Table expected_of(const std::string& kind, std::int64_t decoder_positions) {
  Table table;
  if (kind == "logits") table["logits"] = {Dtype::kF32, {decoder_positions, kVocabulary}};
  if (kind == "streams") table["embed.streams"] = {Dtype::kF32, {kCount, 4, 128}};
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const std::int64_t count = positions_of(layer, decoder_positions);
    const auto name = [&](std::string_view part) {
      return fmt::format("layer.{}.{}", layer, part);
    };
    if (kind == "streams") {
      table[name("streams")] = {Dtype::kF32, {count, 4, 128}};
      table[name("pre")] = {Dtype::kF32, {count, 4}};
    } else if (kind == "attention" || kind == "moe") {
      table[name(kind)] = {Dtype::kF32, {count, 128}};
      table[name(kind + "_input")] = {Dtype::kF32, {count, 128}};
    } else if (kind == "window") {
      table[fmt::format("window.{}.rows", layer)] = {Dtype::kF32, {count, 64}};
    } else if (kind == "router") {
      table[fmt::format("router.{}.experts", layer)] = {Dtype::kI32, {count, 3}};
      table[fmt::format("router.{}.weights", layer)] = {Dtype::kF32, {count, 3}};
    }
  }
  return table;
}

TEST(TraceCommandTest, WritesNamesAndShapesOfEachGroup) {
  const TraceRunner runner = micro_runner();
  for (const auto& [replay, decoder_positions] :
       std::map<std::string, std::int64_t>{{"full", kCount}, {"bounded", kWindow}}) {
    for (const char* kind : {"logits", "streams", "attention", "moe", "window", "router"}) {
      SCOPED_TRACE(replay + " " + kind);
      const Trace trace = runner.trace({"--replay", replay, "--what", kind});
      expect_shapes(trace, expected_of(kind, decoder_positions));
      EXPECT_EQ(integers_of(trace.at("positions")), range(kCount - decoder_positions, kCount));
    }
  }
}

TEST(TraceCommandTest, WritesChosenRowsAndPool) {
  const Trace trace = micro_runner().trace({"--replay", "full", "--what", "index"});
  expect_shapes(trace, {{"index.2.rows", {Dtype::kI32, {kCount, 8}}},
                        {"index.4.rows", {Dtype::kI32, {kCount, 8}}},
                        {"index.6.rows", {Dtype::kI32, {kCount, 8}}},
                        {"index.8.rows", {Dtype::kI32, {kCount, 8}}},
                        {"index.6.pool", {Dtype::kI32, {kCount, 4}}}});
  // At position 1 layer 2 has one row, at position 40 more than it may choose.
  const std::vector<std::int32_t> rows = integers_of(trace.at("index.2.rows"));
  EXPECT_EQ(std::vector(rows.begin(), rows.begin() + 8), std::vector<std::int32_t>(8, -1));
  EXPECT_EQ(rows[8], 0);
  EXPECT_EQ(rows[9], -1);
  EXPECT_EQ(std::count(rows.end() - 8, rows.end(), -1), 0);
}

TEST(TraceCommandTest, WritesTheMemoryAsValuesAndAsStored) {
  Table table;
  for (const auto& [layer, rows] : std::map<int, std::int64_t>{{2, 20}, {4, 20}, {6, 41}}) {
    table[fmt::format("kv.{}.rows", layer)] = {Dtype::kF32, {rows, 64}};
    table[fmt::format("kv.{}.index_keys", layer)] = {Dtype::kF32, {rows, 32}};
    table[fmt::format("kv.{}.codes", layer)] = {Dtype::kU8, {rows, 64 / 2 + 64 / 16}};
    table[fmt::format("kv.{}.index_codes", layer)] = {Dtype::kU8, {rows, 32 / 2 + 32 / 32}};
  }
  expect_shapes(micro_runner().trace({"--what", "rows"}), table);
  for (const auto& [layer, width] : std::map<int, std::int64_t>{{2, 64}, {4, 64}, {6, 64}}) {
    table[fmt::format("kv.{}.codes", layer)].shape[1] = width * 4;
    table[fmt::format("kv.{}.index_codes", layer)].shape[1] = width / 2 * 4;
  }
  expect_shapes(micro_runner().trace({"--what", "rows", "--mode", "plain"}), table);
}

TEST(TraceCommandTest, LogitsAreThoseOfASession) {
  const auto loaded = service::LoadedModel::open(tiny_folder("micro"), {}).value();
  const TraceRunner runner(tiny_folder("micro"), "[0, 17, 250, 3, 99, 479, 17]");
  const std::vector<engine::TokenId> ids = {0, 17, 250, 3, 99, 479, 17};
  engine::Session session = loaded.engine().make_session();
  ASSERT_TRUE(session.prefill(ids).has_value());
  const std::string traced = runner.trace({}).at("logits").bytes;
  const auto newest = std::as_bytes(session.logits());
  ASSERT_EQ(traced.size(), ids.size() * newest.size());
  EXPECT_EQ(
      std::memcmp(traced.data() + (ids.size() - 1) * newest.size(), newest.data(), newest.size()),
      0);
}

class TraceSameBitsTest : public testing::TestWithParam<std::string> {};

TEST_P(TraceSameBitsTest, SlicesOfThePromptChangeNothing) {
  const TraceRunner runner = micro_runner();
  for (const char* replay : {"bounded", "exact", "full"}) {
    const std::vector<std::string> options = {"--what", kEverything, "--replay",
                                              replay,   "--mode",    GetParam()};
    const Trace whole = runner.trace(options);
    for (const char* chunk : {"1", "7"}) {
      SCOPED_TRACE(std::string(replay) + ", chunk " + chunk);
      std::vector<std::string> sliced = options;
      sliced.insert(sliced.end(), {"--chunk", chunk});
      expect_same(runner.trace(sliced), whole);
    }
  }
}

TEST_P(TraceSameBitsTest, TokensFedOneByOneChangeNothing) {
  const TraceRunner runner = micro_runner();
  const std::vector<std::string> options = {"--what", kEverything, "--replay",
                                            "full",   "--mode",    GetParam()};
  const Trace whole = runner.trace(options);
  for (const char* first : {"1", "20", "40", "41"}) {
    SCOPED_TRACE(first);
    std::vector<std::string> fed = options;
    fed.insert(fed.end(), {"--decode-from", first});
    expect_same(runner.trace(fed), whole);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, TraceSameBitsTest, testing::Values("reference", "wide", "plain"),
                         [](const auto& mode) { return mode.param; });

TEST(TraceCommandTest, TheDecoderStartsAtTheEndOfThePrompt) {
  const Trace trace = micro_runner().trace({"--decode-from", "30"});
  EXPECT_EQ(integers_of(trace.at("positions")), range(30 - kWindow, kCount));
  EXPECT_EQ(trace.at("logits").shape, (Shape{kCount - 30 + kWindow, kVocabulary}));
}

// On so few ids the rounding of the scores changes no choice of layers that see few rows.
TEST(TraceCommandTest, IndexScoresMayBeRounded) {
  const TraceRunner runner = micro_runner();
  const Trace plain = runner.trace({"--what", "index", "--index-scores", "f32"});
  expect_same(plain, runner.trace({"--what", "index"}));
  EXPECT_EQ(names_of(runner.trace({"--what", "index", "--index-scores", "bf16"})), names_of(plain));
}

TEST(TraceCommandTest, AGroupNamedTwiceCountsOnce) {
  const TraceRunner runner = micro_runner();
  expect_same(runner.trace({"--what", "logits,logits"}), runner.trace({"--what", "logits"}));
  EXPECT_EQ(runner.trace({"--what", "rows", "--what", "logits"}).size(), 14U);
}

TEST(TraceCommandTest, NamesWhatIsWrongWithIds) {
  const std::map<std::string, std::vector<std::string>> rows = {
      {"", {"not JSON"}},
      {"[1, 2", {"not JSON"}},
      {"[1] [2]", {"not JSON"}},
      {"[]", {"empty"}},
      {"{\"ids\": [1]}", {"type is object"}},
      {"7", {"type is number"}},
      {"[1, \"2\"]", {"entry 1", "string"}},
      {"[1, [2]]", {"entry 1", "array"}},
      {"[1, null]", {"entry 1", "null"}},
      {"[1.5]", {"entry 0 is 1.5"}},
      {"[3, -1]", {"entry 1 is -1"}},
      {"[2147483648]", {"entry 0 is 2147483648"}},
      {"[18446744073709551615]", {"entry 0 is 18446744073709551615"}},
      {"[0, 480]", {"token 1 is id 480", "0 to 479"}},
      {"[\"\xFF\"]", {"not JSON"}},
      {std::string(100'000, '[') + std::string(100'000, ']'), {"entry 0", "array"}}};
  for (const auto& [ids, parts] : rows) {
    SCOPED_TRACE(ids.substr(0, 40));
    const TraceRunner runner(tiny_folder("micro"), ids);
    expect_failure(runner.run({}), parts);
    EXPECT_FALSE(std::filesystem::exists(runner.folder() / "trace.safetensors"));
  }
}

TEST(TraceCommandTest, NamesFilesAndNumbersThatDoNotFit) {
  const TraceRunner runner = micro_runner();
  expect_failure(runner.run({"--decode-from", "42"}), {"--decode-from 42", "41 ids"});
  expect_failure(runner.run({}, "nowhere/trace.safetensors"), {"not_found", "nowhere"});
  expect_failure(test_support::run_program({"trace", tiny_folder("micro"), "--ids", "/nowhere.json",
                                            "-o", (runner.folder() / "trace").string()}),
                 {"not_found", "/nowhere.json"});
}

TEST(TraceCommandTest, RefusesMoreIdsThanTheModelTakes) {
  std::string ids = "[0";
  for (int i = 0; i < 4096; ++i) ids += ",1";
  expect_failure(TraceRunner(tiny_folder("odd"), ids + "]").run({}),
                 {"context_too_long", "4097", "4096"});
}

}  // namespace
}  // namespace locket::cli
