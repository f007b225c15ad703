// Every sublayer in mode `reference` alone against the vendor's code, fed with the recorded inputs
// of every position: nearly every row must have the recorded bits, and the few others must be near.
// The streams after a site are judged by elements: their coefficients come from long sums and
// divisions that the vendor's code takes in another order, so that now and then an element is one
// bfloat16 unit off.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>

#include "kernels/rms_norm.h"
#include "kernels/sparse_attention.h"
#include "model/embedding.h"
#include "tests/support/oracle_compare.h"
#include "tests/support/oracle_official.h"

namespace locket::test_support {
namespace {

using model::NumericsMode;
using tensor::FloatMatrix;

constexpr double kEqualRows = 0.99;
constexpr double kTolerance = 1e-2;  // relative L2 of a row that is not equal
// Of attention outputs: heads that are a unit off flip an E4M3 code of the 64 or 96 that wo_b
// reads, a step of up to 1/8 of one of them (official_attention_test.cc shows it).
constexpr double kOutputTolerance = 3e-2;
// Rows of latents are long and not quantized: one element in 20000 rounds the other way.
constexpr double kDifferentElements = 5e-4;
// An element that is more than one bfloat16 unit off is the small rest of a sum that cancels.
constexpr double kCancelled = 1e-5;  // of the row's root mean square

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

// What one shape's traces showed.
struct Findings {
  std::map<std::string, RowTally> rows;     // kinds that must be equal
  std::map<std::string, RowTally> streams;  // kinds that are judged by elements
  std::map<std::string, RowTally> numbers;  // float32 coefficients
  RowTally latents;                         // judged by elements
  RowTally other_tiles;                     // attention over lists that are cut into other tiles
  std::size_t choices = 0;
  std::size_t choice_flips = 0;
};

class SublayerComparison {
 public:
  SublayerComparison(OracleModel& oracle, const OfficialTrace& trace, Findings& findings)
      : oracle_(oracle), trace_(trace), findings_(findings), context_(oracle.context()) {}

  void run() {
    const FloatMatrix embedded =
        embed(oracle_.weights().embedding, trace_.tokens(), to_size(config().stream_count));
    compare_all("embedding", embedded, trace_.trace().matrix("streams_embed"));
    for (std::int64_t layer = 0; layer < config().layer_count; ++layer) run_layer(layer);
    compare_end();
  }

 private:
  const model::V41Config& config() const { return oracle_.config(); }
  FloatMatrix recorded(std::int64_t layer, std::string_view what) const {
    return trace_.trace().matrix(fmt::format("layers.{}.{}", layer, what));
  }
  std::string place(std::string_view kind, std::size_t position, std::int64_t layer) const {
    return fmt::format("p{} layer {} position {}: {}", trace_.name(), layer, position, kind);
  }

  // Rows that are not equal must be near, unless a flipped choice is named for them.
  void compare_row(const std::string& kind, std::span<const float> ours,
                   std::span<const float> theirs, const std::string& where) {
    ASSERT_EQ(ours.size(), theirs.size()) << where;
    EXPECT_LE(findings_.rows[kind].add(ours, theirs), kTolerance) << where;
  }

  void compare_all(const std::string& kind, const FloatMatrix& ours, const FloatMatrix& theirs,
                   std::int64_t layer = -1) {
    ASSERT_EQ(ours.rows(), theirs.rows());
    for (std::size_t i = 0; i < ours.rows(); ++i) {
      compare_row(kind, ours.row(i), theirs.row(i), place(kind, i, layer));
    }
  }

  static void tally_all(RowTally& tally, const FloatMatrix& ours, const FloatMatrix& theirs) {
    for (std::size_t i = 0; i < ours.rows(); ++i) tally.add(ours.row(i), theirs.row(i));
  }

  FloatMatrix streams_before(std::int64_t layer) const {
    return layer == 0 ? trace_.trace().matrix("streams_embed") : recorded(layer - 1, "streams_out");
  }
  FloatMatrix pre_before(std::int64_t layer) const {
    if (layer > 0) return recorded(layer - 1, "hc_ffn.pre");
    FloatMatrix pre(trace_.tokens().size(), to_size(config().stream_count));
    for (std::size_t i = 0; i < pre.rows(); ++i) pre.row(i)[0] = 1.0f;
    return pre;
  }

  void run_layer(std::int64_t layer) {
    const model::V41LayerWeights& weights = oracle_.layer_weights(layer);
    FloatMatrix streams = streams_before(layer);
    if (weights.engram) {
      compare_engram(layer, streams);
      streams = recorded(layer, "engram.out");
    }
    compare_all("attn.in", site_input(streams, pre_before(layer), weights.attention_norm),
                recorded(layer, "attn.in"), layer);
    compare_attention(layer);
    compare_site(layer, "attn", weights.attention_site, streams);
    const FloatMatrix middle = recorded(layer, "streams_mid");
    compare_all("ffn.in", site_input(middle, recorded(layer, "hc_attn.pre"), weights.ffn_norm),
                recorded(layer, "ffn.in"), layer);
    compare_ffn(layer);
    compare_site(layer, "ffn", weights.ffn_site, middle);
  }

  FloatMatrix site_input(const FloatMatrix& streams, const FloatMatrix& pre,
                         const std::vector<float>& norm) {
    FloatMatrix u = collapse_streams(context_, streams, pre);
    for (std::size_t i = 0; i < u.rows(); ++i) {
      kernels::rms_norm(u.row(i), norm, config().rms_norm_eps, context_.numerics.rounding(),
                        u.row(i));
    }
    return u;
  }

  void compare_engram(std::int64_t layer, FloatMatrix streams) {
    const model::V41LayerWeights& weights = oracle_.layer_weights(layer);
    const model::EngramHash& hash = oracle_.engram_hash();
    const auto index = to_size(oracle_.role(layer).engram_index);
    const std::size_t width = weights.engram_table->head_dim();
    FloatMatrix gathered(streams.rows(), hash.columns() * width);
    std::vector<std::int64_t> ids(hash.columns());
    for (std::size_t position = 0; position < streams.rows(); ++position) {
      std::vector<std::int32_t> recent;
      for (std::size_t back = 0; back < hash.max_ngram_size() && back <= position; ++back) {
        recent.push_back(trace_.tokens()[position - back]);
      }
      hash.row_ids(index, recent, ids);
      const auto theirs = trace_.trace().integers("engram_hashes", position);
      EXPECT_TRUE(std::ranges::equal(ids, theirs.subspan(index * ids.size(), ids.size())))
          << place("engram rows", position, layer);
      for (std::size_t column = 0; column < ids.size(); ++column) {
        const Status read = weights.engram_table->read_row(
            ids[column], gathered.row(position).subspan(column * width, width));
        ASSERT_TRUE(read) << read.error().message;
      }
    }
    engram_forward(context_, *weights.engram, config().rms_norm_eps, gathered, streams);
    compare_all("engram.out", streams, recorded(layer, "engram.out"), layer);
  }

  // Coefficients of a site from the streams before it, and the streams that they make of the
  // recorded output.
  void compare_site(std::int64_t layer, const std::string& half,
                    const model::HyperConnectionsWeights& weights, FloatMatrix streams) {
    const model::HyperConnections site =
        hyper_connections(context_, site_config(config()), weights, streams);
    const std::string prefix = fmt::format("hc_{}.", half);
    tally_all(findings_.numbers["hc pre"], site.pre, recorded(layer, prefix + "pre"));
    tally_all(findings_.numbers["hc post"], site.post, recorded(layer, prefix + "post"));
    if (trace_.trace().has(fmt::format("layers.{}.{}comb", layer, prefix))) {
      tally_all(findings_.numbers["hc comb"], site.comb, recorded(layer, prefix + "comb"));
    }
    expand_streams(context_, site, recorded(layer, half + ".out"), streams);
    const std::string name = half == "attn" ? "streams_mid" : "streams_out";
    tally_all(findings_.streams[name], streams, recorded(layer, name));
  }

  void compare_ffn(std::int64_t layer) {
    Capture capture;
    context_.observer = &capture;
    const FloatMatrix ours =
        moe_forward(context_, moe_config(config(), layer), oracle_.layer_weights(layer).moe,
                    *oracle_.weights().experts, recorded(layer, "ffn.in"), 0)
            .value();
    context_.observer = nullptr;
    const FloatMatrix theirs = recorded(layer, "ffn.out");
    const std::size_t k = to_size(config().experts_per_token);
    for (std::size_t position = 0; position < ours.rows(); ++position) {
      const auto chosen = capture.integers("experts").subspan(position * k, k);
      const auto wanted =
          trace_.trace().integers(fmt::format("layers.{}.ffn.gate.indices", layer), position);
      findings_.choices += 1;
      if (!std::ranges::equal(chosen, wanted)) {
        findings_.choice_flips += 1;
        print_figures(place("experts flipped", position, layer));
        continue;
      }
      compare_row("ffn.out", ours.row(position), theirs.row(position),
                  place("ffn.out", position, layer));
      findings_.numbers["router weights"].add(
          capture.floats("expert_weights").subspan(position * k, k),
          trace_.trace().floats(fmt::format("layers.{}.ffn.gate.weights", layer), position));
    }
  }

  void compare_attention(std::int64_t layer);
  void compare_end();

  OracleModel& oracle_;
  const OfficialTrace& trace_;
  Findings& findings_;
  model::ForwardContext context_;
};

std::vector<float> as_floats(std::span<const std::uint8_t> codes,
                             std::span<const std::uint8_t> scales) {
  std::vector<float> values(codes.begin(), codes.end());
  values.insert(values.end(), scales.begin(), scales.end());
  return values;
}

std::vector<float> as_floats(const std::vector<std::uint8_t>& bytes) {
  return {bytes.begin(), bytes.end()};
}

// One layer's attention half, position by position, with the recorded memory.
class AttentionComparison {
 public:
  AttentionComparison(OracleModel& oracle, const OfficialTrace& trace, std::int64_t layer,
                      Findings& findings)
      : oracle_(oracle),
        trace_(trace),
        layer_(layer),
        role_(oracle.role(layer)),
        findings_(findings),
        bench_(oracle, layer, trace.tokens().size()) {
    if (role_.kv_source < 0) return;
    const std::string source = fmt::format("layers.{}.attn.", role_.kv_source);
    rows_ = trace.trace().float_rows(source + "main_rows");
    keys_ = trace.trace().float_rows(source + "indexer.keys");
  }

  void run() {
    for (std::size_t row = 0; row < rows_.size() && !role_.writes_rows; ++row) feed_row(row);
    for (std::size_t position = 0; position < trace_.tokens().size(); ++position) {
      run_position(position);
    }
  }

 private:
  std::string name_of(std::string_view what) const {
    return fmt::format("layers.{}.attn.{}", layer_, what);
  }
  std::span<const float> recorded(std::string_view what, std::size_t position) const {
    return trace_.trace().floats(name_of(what), position);
  }
  std::string place(std::string_view kind, std::size_t position) const {
    return fmt::format("p{} layer {} position {}: {}", trace_.name(), layer_, position, kind);
  }
  void feed_row(std::size_t row) {
    bench_.set_row(static_cast<std::int64_t>(row), rows_[row]);
    bench_.set_key(static_cast<std::int64_t>(row), keys_[row]);
  }

  void run_position(std::size_t position) {
    Capture ours;
    const LayerBench::Reused reused = trace_.reused(oracle_.config(), layer_, position);
    bench_.run_attention(static_cast<std::int64_t>(position), recorded("in", position), reused,
                         ours);
    const auto number = static_cast<std::int64_t>(position);
    compare("window codes and scales", as_floats(bench_.window_bytes(number)),
            as_floats(trace_.trace().bytes(name_of("window_rows.codes"), position),
                      trace_.trace().bytes(name_of("window_rows.scales"), position)),
            position);
    bench_.set_window(number, recorded("window_rows", position));
    if (role_.writes_rows && (number + 1) % role_.ratio == 0) compare_row(position, ours);
    std::vector<std::int32_t> chosen = reused.rows;
    if (role_.selects_rows && !compare_selection(position, ours, chosen)) return;
    compare_output(position, ours.floats("attention"), chosen.size());
  }

  void compare(const std::string& kind, std::span<const float> ours, std::span<const float> theirs,
               std::size_t position) {
    ASSERT_EQ(ours.size(), theirs.size()) << place(kind, position);
    EXPECT_LE(findings_.rows[kind].add(ours, theirs),
              kind == "attn.out" ? kOutputTolerance : kTolerance)
        << place(kind, position);
  }

  // The row that `position` completed. It is then replaced by the recorded one.
  void compare_row(std::size_t position, const Capture& ours) {
    const auto number = (static_cast<std::int64_t>(position) + 1) / role_.ratio - 1;
    const auto row = to_size(number);
    const auto byte_row = [&](std::string_view what) {
      return trace_.trace().byte_rows(name_of(what)).at(row);
    };
    findings_.latents.add(ours.floats("latents"),
                          trace_.trace().float_rows(name_of("latent")).at(row));
    compare("main row codes and scales", as_floats(bench_.row_bytes(number)),
            as_floats(byte_row("main_rows.codes"), byte_row("main_rows.scales")), position);
    compare("index key codes and scales", as_floats(bench_.key_bytes(number)),
            as_floats(byte_row("indexer.keys.codes"), byte_row("indexer.keys.scales")), position);
    feed_row(row);
  }

  // False if another selection was made; that is named and excuses the output.
  bool compare_selection(std::size_t position, const Capture& ours,
                         std::vector<std::int32_t>& chosen) {
    const auto theirs = chosen_rows(trace_.trace().integers(name_of("indexer.selected"), position));
    chosen = chosen_rows(ours.integers("index"));
    findings_.choices += 1;
    if (role_.builds_pool) {
      const std::int64_t visible = (static_cast<std::int64_t>(position) + 1) / role_.ratio;
      EXPECT_EQ(chosen_rows(ours.integers("pool")),
                pool_blocks(trace_.trace().bytes(name_of("indexer.candidates"), position), visible,
                            oracle_.config().pool_block_size))
          << place("pool", position);
    }
    if (chosen == theirs) return true;
    findings_.choice_flips += 1;
    print_figures(place("selection flipped", position));
    return false;
  }

  void compare_output(std::size_t position, std::span<const float> ours, std::size_t selected) {
    const auto theirs = recorded("out", position);
    const TilePlace place_in_list = {.position = position,
                                     .prompt_tokens = trace_.trace().prompt_tokens(),
                                     .window = to_size(oracle_.config().sliding_window),
                                     .selected = selected};
    if (has_same_tiles(our_tile_plan(place_in_list), official_tile_plan(place_in_list))) {
      compare("attn.out", ours, theirs, position);
      return;
    }
    EXPECT_LE(findings_.other_tiles.add(ours, theirs), kOutputTolerance)
        << place("attn.out", position);
  }

  OracleModel& oracle_;
  const OfficialTrace& trace_;
  std::int64_t layer_;
  const model::LayerRole& role_;
  Findings& findings_;
  LayerBench bench_;
  std::vector<std::span<const float>> rows_;
  std::vector<std::span<const float>> keys_;
};

void SublayerComparison::compare_attention(std::int64_t layer) {
  AttentionComparison(oracle_, trace_, layer, findings_).run();
}

void SublayerComparison::compare_end() {
  const std::int64_t last = config().layer_count - 1;
  const FloatMatrix hidden =
      collapse_streams(context_, recorded(last, "streams_out"), recorded(last, "hc_ffn.pre"));
  compare_all("hidden", hidden, trace_.trace().matrix("hidden"), last);
}

// A whole layer on recorded streams, position by position, with the recorded memory.
class WholeLayer {
 public:
  WholeLayer(OracleModel& oracle, const OfficialTrace& trace, std::int64_t layer)
      : oracle_(oracle),
        trace_(trace),
        layer_(layer),
        role_(oracle.role(layer)),
        bench_(oracle, layer, trace.tokens().size()) {}

  template <class Visit>
  void run(const Visit& visit_distance, RowTally& tally) {
    std::vector<std::span<const float>> rows;
    std::vector<std::span<const float>> keys;
    if (role_.kv_source >= 0) {
      const std::string source = fmt::format("layers.{}.attn.", role_.kv_source);
      rows = trace_.trace().float_rows(source + "main_rows");
      keys = trace_.trace().float_rows(source + "indexer.keys");
    }
    const auto feed = [&](std::int64_t row) {
      bench_.set_row(row, rows[to_size(row)]);
      bench_.set_key(row, keys[to_size(row)]);
    };
    for (std::size_t row = 0; row < rows.size() && !role_.writes_rows; ++row) {
      feed(static_cast<std::int64_t>(row));
    }
    for (std::size_t i = 0; i < trace_.tokens().size(); ++i) {
      const auto position = static_cast<std::int64_t>(i);
      Capture ours;
      bench_.run(input(i), ours);
      visit_distance(tally.add(ours.floats("streams"), recorded(layer_, "streams_out", i)));
      bench_.set_window(position, recorded(layer_, "attn.window_rows", i));
      if (role_.writes_rows && (position + 1) % role_.ratio == 0) {
        feed((position + 1) / role_.ratio - 1);
      }
    }
  }

 private:
  std::span<const float> recorded(std::int64_t layer, std::string_view what,
                                  std::size_t position) const {
    return trace_.trace().floats(fmt::format("layers.{}.{}", layer, what), position);
  }
  LayerBench::Input input(std::size_t position) const {
    LayerBench::Input input = {.tokens = std::span(trace_.tokens()).first(position + 1),
                               .streams = trace_.trace().floats("streams_embed", position),
                               .pre = {},
                               .reused = trace_.reused(oracle_.config(), layer_, position)};
    if (layer_ > 0) {
      input.streams = recorded(layer_ - 1, "streams_out", position);
      input.pre = recorded(layer_ - 1, "hc_ffn.pre", position);
    }
    return input;
  }

  OracleModel& oracle_;
  const OfficialTrace& trace_;
  std::int64_t layer_;
  const model::LayerRole& role_;
  LayerBench bench_;
};

class OfficialSublayersTest : public ::testing::TestWithParam<std::string_view> {
 protected:
  OracleModel& oracle() const { return OracleModel::get(GetParam(), NumericsMode::kReference); }
  void check(const Findings& findings) const;
};

void OfficialSublayersTest::check(const Findings& findings) const {
  ASSERT_GE(findings.rows.size(), 9u);
  for (const auto& [kind, tally] : findings.rows) {
    print_figures(fmt::format("official {} {}: {}", GetParam(), kind, describe(tally)));
    EXPECT_GE(tally.equal_share(), kEqualRows) << kind;
  }
  print_figures(fmt::format("official {} latents: {}, at most {} bfloat16 units", GetParam(),
                            describe(findings.latents), findings.latents.max_units));
  EXPECT_LE(findings.latents.different_element_share(), kDifferentElements);
  EXPECT_LE(findings.latents.max_relative, 1e-3);
  for (const auto& [kind, tally] : findings.streams) {
    print_figures(
        fmt::format("official {} {}: {}, at most {} bfloat16 units; beyond one unit at most "
                    "{:.1e} of the row's root mean square",
                    GetParam(), kind, describe(tally), tally.max_units, tally.max_cancelled));
    EXPECT_LE(tally.different_element_share(), kDifferentElements) << kind;
    EXPECT_LE(tally.max_cancelled, kCancelled) << kind;
  }
  for (const auto& [kind, tally] : findings.numbers) {
    print_figures(fmt::format("official {} {}: {} rows, largest relative L2 {:.1e}", GetParam(),
                              kind, tally.rows, tally.max_relative));
    EXPECT_LE(tally.max_relative, 1e-6) << kind;
  }
  print_figures(fmt::format("official {}: {} of {} selections and router choices flipped",
                            GetParam(), findings.choice_flips, findings.choices));
  EXPECT_LE(static_cast<double>(findings.choice_flips),
            0.01 * static_cast<double>(findings.choices));
  if (findings.other_tiles.rows > 0) {
    print_figures(fmt::format("official {} attn.out over lists cut into other tiles: {}",
                              GetParam(), describe(findings.other_tiles)));
  }
}

TEST_P(OfficialSublayersTest, NearlyEveryRowHasTheRecordedBits) {
  const OracleFile file = read_official_trace_file(GetParam());
  Findings findings;
  for (const OfficialPrompt& prompt : read_official_prompts(GetParam())) {
    if (!prompt.is_traced) continue;
    const OfficialTrace trace(file, prompt);
    SublayerComparison(oracle(), trace, findings).run();
  }
  check(findings);
}

// The recorded streams go in, a whole layer with its recorded memory works on them.
TEST_P(OfficialSublayersTest, WholeLayersGiveNearlyTheRecordedStreams) {
  const OracleFile file = read_official_trace_file(GetParam());
  RowTally tally;
  std::size_t near = 0;
  for (const OfficialPrompt& prompt : read_official_prompts(GetParam())) {
    if (!prompt.is_traced) continue;
    const OfficialTrace trace(file, prompt);
    for (std::int64_t layer = 0; layer < oracle().config().layer_count; ++layer) {
      WholeLayer(oracle(), trace, layer)
          .run([&](double distance) { near += distance <= 1e-2; }, tally);
    }
  }
  print_figures(fmt::format("official {} whole layers, streams_out: {}; within 1e-2: {}",
                            GetParam(), describe(tally), near));
  EXPECT_GE(tally.equal_share(), 0.9);
  EXPECT_GE(static_cast<double>(near), 0.99 * static_cast<double>(tally.rows));
}

INSTANTIATE_TEST_SUITE_P(Shapes, OfficialSublayersTest, ::testing::ValuesIn(kOracleShapes),
                         [](const auto& shape) { return std::string(shape.param); });

}  // namespace
}  // namespace locket::test_support
