// Every layer in float32 alone, fed with what Hugging Face transformers recorded before it:
// streams, collapse weights, window rows, compressed rows, index keys and chosen rows of every
// position. What a layer gives must be the recorded values to 1e-5, unless one of its own values
// lies so close to a boundary (of a quantizer, of a choice) that rounding decides; those places are
// counted.
#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>

#include "model/embedding.h"
#include "tests/support/oracle_compare.h"
#include "tests/support/oracle_hf.h"

namespace locket::test_support {
namespace {

using model::NumericsMode;

constexpr double kTolerance = 1e-5;    // relative L2
constexpr float kMarginNoise = 1e-6f;  // scores nearer to each other than this may change places

struct Distances {
  std::size_t rows = 0;
  double largest = 0;
};

struct Flips {
  std::size_t codes = 0;      // values in stored rows that fell to the other side
  std::size_t all_codes = 0;  // values in stored rows
  std::size_t rows = 0;
  std::size_t choices = 0;  // selections and router choices within kMarginNoise
  std::size_t all_choices = 0;
  std::size_t positions = 0;  // that saw one of these
  std::size_t all_positions = 0;
};

// Compares one layer of one trace, position by position.
class LayerComparison {
 public:
  LayerComparison(OracleModel& oracle, const HfTrace& trace, std::int64_t layer)
      : oracle_(oracle),
        trace_(trace),
        layer_(layer),
        role_(oracle.role(layer)),
        bench_(oracle, layer, trace.tokens().size()) {
    if (role_.kv_source >= 0) {
      rows_ = trace.rows(role_.kv_source);
      keys_ = trace.keys(role_.kv_source);
    }
  }

  void run() {
    if (role_.kv_source >= 0 && !role_.writes_rows) {
      for (std::size_t row = 0; row < rows_.rows(); ++row) feed_row(row);
    }
    for (std::size_t position = 0; position < trace_.tokens().size(); ++position) {
      run_position(position);
    }
  }

  const std::map<std::string, Distances>& distances() const { return distances_; }
  const Flips& flips() const { return flips_; }

 private:
  std::string recorded_name(std::string_view what, std::int64_t layer) const {
    return fmt::format("layers.{}.{}", layer, what);
  }
  std::span<const float> recorded(std::string_view what, std::size_t position) const {
    return trace_.trace().floats(recorded_name(what, layer_), position);
  }
  std::string place(std::string_view what, std::size_t position) const {
    return fmt::format("{} layer {} position {}: {}", trace_.name(), layer_, position, what);
  }
  void feed_row(std::size_t row) {
    bench_.set_row(static_cast<std::int64_t>(row), rows_.row(row));
    bench_.set_key(static_cast<std::int64_t>(row), keys_.row(row));
  }

  void run_position(std::size_t position) {
    const OracleTrace& record = trace_.trace();
    LayerBench::Input input = {.tokens = std::span(trace_.tokens()).first(position + 1),
                               .streams = record.floats("embed.streams", position),
                               .pre = {},
                               .reused = trace_.reused(oracle_.config(), layer_, position)};
    if (layer_ > 0) {
      input.streams = record.floats(recorded_name("streams", layer_ - 1), position);
      input.pre = record.floats(recorded_name("pre", layer_ - 1), position);
    }
    Capture ours;
    bench_.run(input, ours);
    is_flipped_ = false;
    compare_before_attention(position, ours);
    compare_stored(position);
    compare_selection(position, ours);
    compare(position, "attn_out", ours.floats("attention"));
    compare_experts(position, ours);
    compare(position, "ffn_out", ours.floats("moe"));
    compare(position, "streams", ours.floats("streams"));
    compare(position, "pre", ours.floats("pre"));
    flips_.positions += is_flipped_ ? 1 : 0;
    flips_.all_positions += 1;
    bench_.set_window(static_cast<std::int64_t>(position), recorded("window_rows", position));
  }

  void compare(std::size_t position, const std::string& what, std::span<const float> ours) {
    const auto theirs = recorded(what, position);
    ASSERT_EQ(ours.size(), theirs.size()) << place(what, position);
    if (is_flipped_) return;
    Distances& distances = distances_[what];
    const double distance = relative_l2(ours, theirs);
    EXPECT_LE(distance, kTolerance) << place(what, position);
    distances.rows += 1;
    distances.largest = std::max(distances.largest, distance);
  }

  void compare_before_attention(std::size_t position, const Capture& ours) {
    if (role_.engram_index >= 0) compare(position, "engram_streams", ours.floats("engram"));
    compare(position, "attn_in", ours.floats("attention_input"));
    if (role_.writes_rows && closes_row(position) &&
        !recorded("latents", position_row(position)).empty()) {
      compare_latent(position, ours.floats("latents"));
    }
  }

  bool closes_row(std::size_t position) const {
    return (static_cast<std::int64_t>(position) + 1) % role_.ratio == 0;
  }
  // Latents of the prompt lie in rows, those of a step are alone.
  std::size_t position_row(std::size_t position) const {
    if (position >= trace_.trace().prompt_tokens()) return position;
    return (position + 1) / static_cast<std::size_t>(role_.ratio) - 1;
  }

  void compare_latent(std::size_t position, std::span<const float> ours) {
    const double distance = relative_l2(ours, recorded("latents", position_row(position)));
    EXPECT_LE(distance, kTolerance) << place("latent", position);
    Distances& distances = distances_["latents"];
    distances.rows += 1;
    distances.largest = std::max(distances.largest, distance);
  }

  // A stored row is quantized: equal, or a code fell to the other side. Without quantizers: near.
  void compare_codes(std::size_t position, const std::string& what, std::span<const float> ours,
                     std::span<const float> theirs) {
    if (trace_.mode() == NumericsMode::kPlain) {
      Distances& distances = distances_[what];
      const double distance = relative_l2(ours, theirs);
      EXPECT_LE(distance, kTolerance) << place(what, position);
      distances.rows += 1;
      distances.largest = std::max(distances.largest, distance);
      return;
    }
    const std::size_t different = count_different(ours, theirs);
    flips_.all_codes += ours.size();
    flips_.codes += different;
    flips_.rows += different > 0 ? 1 : 0;
    is_flipped_ = is_flipped_ || different > 0;
  }

  void compare_stored(std::size_t position) {
    compare_codes(position, "window_rows", bench_.window(static_cast<std::int64_t>(position)),
                  recorded("window_rows", position));
    if (!role_.writes_rows || !closes_row(position)) return;
    const auto row =
        static_cast<std::size_t>((static_cast<std::int64_t>(position) + 1) / role_.ratio - 1);
    const auto number = static_cast<std::int64_t>(row);
    compare_codes(position, "rows", bench_.row(number), rows_.row(row));
    compare_codes(position, "index_keys", bench_.key(number), keys_.row(row));
    feed_row(row);
  }

  // A choice that differs counts as a flip only where its margin says that it may.
  void compare_choice(std::size_t position, std::string_view what, bool is_equal, float margin) {
    flips_.all_choices += 1;
    if (is_equal) return;
    EXPECT_TRUE(is_flipped_ || margin <= kMarginNoise)
        << place(what, position) << " chosen differ at a margin of " << margin;
    flips_.choices += 1;
    is_flipped_ = true;
  }

  void compare_selection(std::size_t position, const Capture& ours) {
    if (!role_.selects_rows) return;
    const auto theirs =
        chosen_rows(trace_.trace().integers(recorded_name("index_rows", layer_), position));
    const auto margin = recorded("index_margin", position);
    compare_choice(position, "rows", chosen_rows(ours.integers("index")) == theirs,
                   margin.empty() ? 0.0f : margin[0]);
    if (!role_.builds_pool) return;
    const std::int64_t visible = (static_cast<std::int64_t>(position) + 1) / role_.ratio;
    const auto flags = trace_.trace().bytes(recorded_name("candidates", layer_), position);
    EXPECT_EQ(chosen_rows(ours.integers("pool")),
              pool_blocks(flags, visible, oracle_.config().pool_block_size))
        << place("pool", position);
  }

  void compare_experts(std::size_t position, const Capture& ours) {
    const auto theirs = trace_.trace().integers(recorded_name("router_ids", layer_), position);
    compare_choice(position, "experts", std::ranges::equal(ours.integers("experts"), theirs),
                   recorded("router_margin", position)[0]);
    compare(position, "router_weights", ours.floats("expert_weights"));
  }

  OracleModel& oracle_;
  const HfTrace& trace_;
  std::int64_t layer_;
  const model::LayerRole& role_;
  LayerBench bench_;
  tensor::FloatMatrix rows_;
  tensor::FloatMatrix keys_;
  bool is_flipped_ = false;  // this position, from here on
  std::map<std::string, Distances> distances_;
  Flips flips_;
};

void add(Flips& sum, const Flips& one) {
  sum.codes += one.codes;
  sum.all_codes += one.all_codes;
  sum.rows += one.rows;
  sum.choices += one.choices;
  sum.all_choices += one.all_choices;
  sum.positions += one.positions;
  sum.all_positions += one.all_positions;
}

class HfLayersTest : public ::testing::TestWithParam<std::string_view> {};

TEST_P(HfLayersTest, EveryLayerAloneGivesTheRecordedValues) {
  Flips all;
  for (const std::string& file : hf_trace_files(GetParam())) {
    const HfTrace trace(GetParam(), file);
    OracleModel& oracle = OracleModel::get(GetParam(), trace.mode());
    std::map<std::string, Distances> distances;
    Flips flips;
    for (std::int64_t layer = 0; layer < oracle.config().layer_count; ++layer) {
      LayerComparison comparison(oracle, trace, layer);
      comparison.run();
      add(flips, comparison.flips());
      for (const auto& [what, one] : comparison.distances()) {
        distances[what].rows += one.rows;
        distances[what].largest = std::max(distances[what].largest, one.largest);
      }
    }
    std::string line;
    for (const auto& [what, one] : distances) {
      line += fmt::format(" {} {} rows {:.1e},", what, one.rows, one.largest);
    }
    print_figures(fmt::format("hf layers {}: largest relative L2:{}", trace.name(), line));
    print_figures(
        fmt::format("hf layers {}: {} of {} stored codes flipped (in {} rows), {} of {} choices at "
                    "a tie, {} of {} "
                    "positions behind one of these",
                    trace.name(), flips.codes, flips.all_codes, flips.rows, flips.choices,
                    flips.all_choices, flips.positions, flips.all_positions));
    add(all, flips);
  }
  EXPECT_LE(static_cast<double>(all.codes), 1e-4 * static_cast<double>(all.all_codes));
  EXPECT_LE(static_cast<double>(all.choices), 1e-2 * static_cast<double>(all.all_choices));
  EXPECT_LE(static_cast<double>(all.positions), 0.02 * static_cast<double>(all.all_positions));
}

TEST_P(HfLayersTest, EmbeddingEngramRowsAndHeadGiveTheRecordedValues) {
  for (const std::string& file : hf_trace_files(GetParam())) {
    const HfTrace trace(GetParam(), file);
    OracleModel& oracle = OracleModel::get(GetParam(), trace.mode());
    const model::V41Config& config = oracle.config();
    const auto streams = static_cast<std::size_t>(config.stream_count);
    const tensor::FloatMatrix embedded = embed(oracle.weights().embedding, trace.tokens(), streams);
    EXPECT_EQ(max_abs_difference(embedded.values(), trace.trace().matrix("embed.streams").values()),
              0);
    const std::int64_t last = config.layer_count - 1;
    const model::ResidualRows rows = {
        .streams = trace.trace().matrix(fmt::format("layers.{}.streams", last)),
        .pre = trace.trace().matrix(fmt::format("layers.{}.pre", last))};
    model::ForwardContext context = oracle.context();
    const tensor::FloatMatrix logits = oracle.model().logits(context, rows);
    double largest = 0;
    for (std::size_t position = 0; position < logits.rows(); ++position) {
      const double distance =
          relative_l2(logits.row(position), trace.trace().floats("logits", position));
      EXPECT_LE(distance, kTolerance) << trace.name() << " logits, position " << position;
      largest = std::max(largest, distance);
    }
    print_figures(fmt::format("hf head {}: {} rows of logits, largest relative L2 {:.1e}",
                              trace.name(), logits.rows(), largest));
  }
}

TEST_P(HfLayersTest, EngramRowsAreTheRecordedOnes) {
  std::size_t compared = 0;
  for (const std::string& file : hf_trace_files(GetParam())) {
    const HfTrace trace(GetParam(), file);
    OracleModel& oracle = OracleModel::get(GetParam(), trace.mode());
    if (oracle.config().engram.layer_ids.empty()) GTEST_SKIP() << "the model has no Engram layers";
    const model::EngramHash& hash = oracle.engram_hash();
    std::vector<std::int64_t> ids(hash.columns());
    for (std::size_t position = 0; position < trace.tokens().size(); ++position) {
      std::vector<std::int32_t> recent;
      for (std::size_t back = 0; back < hash.max_ngram_size() && back <= position; ++back) {
        recent.push_back(trace.tokens()[position - back]);
      }
      const auto recorded = trace.trace().integers("engram_rows", position);
      ASSERT_EQ(recorded.size(), hash.layer_count() * hash.columns());
      for (std::size_t layer = 0; layer < hash.layer_count(); ++layer) {
        hash.row_ids(layer, recent, ids);
        EXPECT_TRUE(std::ranges::equal(ids, recorded.subspan(layer * ids.size(), ids.size())))
            << trace.name() << " position " << position;
        compared += ids.size();
      }
    }
  }
  print_figures(fmt::format("hf engram {}: {} row ids equal", GetParam(), compared));
}

INSTANTIATE_TEST_SUITE_P(Shapes, HfLayersTest, ::testing::ValuesIn(kOracleShapes),
                         [](const auto& shape) { return std::string(shape.param); });

}  // namespace
}  // namespace locket::test_support
