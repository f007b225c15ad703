// The two halves of attention alone, where queries and heads are recorded (shape `thin`, whose slot
// lists are longer than one tile): heads from recorded queries and rows, and the output from
// recorded heads. It shows that the slot list is all that separates the rows of
// official_sublayers_test.cc whose lists the vendor's code cuts into other tiles.
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/rotary.h"
#include "kernels/sparse_attention.h"
#include "model/linear.h"
#include "tests/support/oracle_compare.h"
#include "tests/support/oracle_official.h"

namespace locket::test_support {
namespace {

using model::NumericsMode;
using tensor::FloatMatrix;

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

// Positions of one layer of one trace with recorded heads.
class RecordedHeads {
 public:
  RecordedHeads(OracleModel& oracle, const OfficialTrace& trace, std::int64_t layer)
      : oracle_(oracle), trace_(trace), layer_(layer), role_(oracle.role(layer)) {
    window_rows_ = trace.trace().float_rows(name_of("window_rows"));
    if (role_.kv_source < 0) return;
    rows_ = trace.trace().float_rows(fmt::format("layers.{}.attn.main_rows", role_.kv_source));
  }

  std::string name(std::size_t position) const {
    return fmt::format("thin p{} layer {} position {}", trace_.name(), layer_, position);
  }
  bool exist() const { return trace_.trace().has(name_of("heads")); }
  std::span<const float> heads(std::size_t position) const {
    return trace_.trace().floats(name_of("heads"), position);
  }
  std::span<const float> output(std::size_t position) const {
    return trace_.trace().floats(name_of("out"), position);
  }

  std::vector<std::int32_t> selection(std::size_t position) const {
    if (role_.ratio == 0) return {};
    return chosen_rows(trace_.trace().integers(
        fmt::format("layers.{}.attn.indexer.selected", role_.index_source), position));
  }
  TilePlace place(std::size_t position) const {
    return {.position = position,
            .prompt_tokens = trace_.trace().prompt_tokens(),
            .window = to_size(oracle_.config().sliding_window),
            .selected = selection(position).size()};
  }

  // Heads from the recorded query over the recorded rows in the order of `plan`.
  std::vector<float> attend(std::size_t position, const TilePlan& plan) const {
    const auto dim = to_size(oracle_.config().head_dim);
    std::vector<float> rows(plan.slots * dim);
    std::vector<std::uint8_t> used(plan.slots);
    const auto fill = [&](std::size_t slot, std::span<const float> values) {
      std::ranges::copy(values, rows.begin() + static_cast<std::ptrdiff_t>(slot * dim));
      used[slot] = 1;
    };
    const std::size_t first = position + 1 - plan.window.size();
    for (std::size_t i = 0; i < plan.window.size(); ++i) {
      fill(plan.window[i], window_rows_.at(first + i));
    }
    const std::vector<std::int32_t> selected = selection(position);
    for (std::size_t i = 0; i < selected.size(); ++i) {
      fill(plan.selected[i], rows_.at(static_cast<std::size_t>(selected[i])));
    }
    const std::vector<kernels::AttentionRow> slots = kernels::float_slots(rows, dim, used);
    std::vector<float> heads(to_size(oracle_.config().head_count) * dim);
    kernels::sparse_attention(
        {.heads = to_size(oracle_.config().head_count),
         .head_dim = dim,
         .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim))),
         .query = trace_.trace().floats(name_of("q"), position),
         .rows = slots,
         .sink = oracle_.layer_weights(layer_).attention.sink,
         .rounding = kernels::Rounding::kBf16},
        heads);
    return heads;
  }

  // Heads rotated back, then projected by groups.
  struct Projection {
    FloatMatrix input;  // of wo_b, as E4M3 values
    FloatMatrix output;
  };
  Projection project(std::size_t position, std::span<const float> given_heads) const {
    model::ForwardContext context = oracle_.context();
    const model::Csa2Config config = attention_config(oracle_.config(), layer_);
    const model::Csa2Weights& weights = oracle_.layer_weights(layer_).attention;
    std::vector<float> heads(given_heads.begin(), given_heads.end());
    rotate_back(heads, config, static_cast<std::int64_t>(position));
    const std::size_t width = heads.size() / config.output_groups;
    const std::size_t rank = weights.wo_a.front().rows;
    FloatMatrix joined(1, config.output_groups * rank);
    for (std::size_t group = 0; group < config.output_groups; ++group) {
      FloatMatrix part(1, width);
      std::ranges::copy(std::span(heads).subspan(group * width, width), part.row(0).begin());
      const FloatMatrix low = rounded_linear(context, weights.wo_a[group], part);
      std::ranges::copy(low.row(0), joined.row(0).subspan(group * rank, rank).begin());
    }
    Projection projection = {.input = quantize_activations(context, joined), .output = {}};
    projection.output = rounded_linear(context, weights.wo_b, projection.input);
    return projection;
  }

 private:
  std::string name_of(std::string_view what) const {
    return fmt::format("layers.{}.attn.{}", layer_, what);
  }

  void rotate_back(std::vector<float>& heads, const model::Csa2Config& config,
                   std::int64_t position) const {
    const std::vector<float> frequencies =
        config.ratio > 0 ? compressed_frequencies(oracle_.config())
                         : model::rotary_frequencies({.dim = oracle_.config().rope_dim,
                                                      .base = oracle_.config().rope_theta});
    const model::RotaryTable table = model::rotary_table(frequencies, {{position}});
    for (std::size_t head = 0; head < config.heads; ++head) {
      const auto values = std::span(heads).subspan(head * config.head_dim, config.head_dim);
      kernels::rotate_pairs(values.last(config.rope_dim), table.cos.row(0), table.sin.row(0),
                            kernels::RotaryDirection::kInverse, kernels::Rounding::kBf16);
    }
  }

  OracleModel& oracle_;
  const OfficialTrace& trace_;
  std::int64_t layer_;
  const model::LayerRole& role_;
  std::vector<std::span<const float>> window_rows_;
  std::vector<std::span<const float>> rows_;
};

// Calls visit(heads, position) for every position of `thin` with recorded heads.
template <class Visit>
void visit_recorded_heads(const Visit& visit) {
  OracleModel& oracle = OracleModel::get("thin", NumericsMode::kReference);
  const OracleFile file = read_official_trace_file("thin");
  std::size_t visited = 0;
  for (const OfficialPrompt& prompt : read_official_prompts("thin")) {
    if (!prompt.is_traced) continue;
    const OfficialTrace trace(file, prompt);
    for (std::int64_t layer = 0; layer < oracle.config().layer_count; ++layer) {
      const RecordedHeads heads(oracle, trace, layer);
      for (std::size_t i = 0; heads.exist() && i < trace.tokens().size(); ++i) {
        visit(heads, i);
        ++visited;
      }
    }
  }
  ASSERT_GE(visited, 100u);
}

TEST(OfficialAttentionTest, HeadsFollowFromTheSlotListOfTheOfficialCode) {
  RowTally same_tiles;
  RowTally official_list;
  RowTally our_list;
  visit_recorded_heads([&](const RecordedHeads& recorded, std::size_t position) {
    const TilePlace place = recorded.place(position);
    const TilePlan ours = our_tile_plan(place);
    const TilePlan theirs = official_tile_plan(place);
    const auto heads = recorded.heads(position);
    if (has_same_tiles(ours, theirs)) {
      same_tiles.add(recorded.attend(position, ours), heads);
      return;
    }
    official_list.add(recorded.attend(position, theirs), heads);
    our_list.add(recorded.attend(position, ours), heads);
  });
  print_figures("official thin heads, same tiles: " + describe(same_tiles));
  print_figures("official thin heads, other tiles, with the official list: " +
                describe(official_list));
  print_figures("official thin heads, other tiles, with our list: " + describe(our_list));
  ASSERT_GT(official_list.rows, 0u);
  // Now and then a probability rounds the other way and moves its row's heads by a unit.
  EXPECT_GE(same_tiles.equal_share(), 0.9);
  EXPECT_LE(same_tiles.max_relative, 3e-3);
  EXPECT_GE(official_list.equal_share(), 0.9);
  EXPECT_LE(official_list.max_relative, 3e-3);
  EXPECT_GE(our_list.different_element_share(), 10 * official_list.different_element_share());
}

TEST(OfficialAttentionTest, OutputOfRecordedHeadsHasTheRecordedBits) {
  RowTally output;
  visit_recorded_heads([&](const RecordedHeads& recorded, std::size_t position) {
    const auto ours = recorded.project(position, recorded.heads(position));
    EXPECT_LE(output.add(ours.output.row(0), recorded.output(position)), 1e-2)
        << "position " << position;
  });
  print_figures("official thin attn.out of recorded heads: " + describe(output));
  EXPECT_GE(output.equal_share(), 0.99);
}

TEST(OfficialAttentionTest, OutputsThatDifferHaveAnActivationCodeThatFlipped) {
  std::size_t different = 0;
  visit_recorded_heads([&](const RecordedHeads& recorded, std::size_t position) {
    const std::vector<float> heads =
        recorded.attend(position, our_tile_plan(recorded.place(position)));
    const auto ours = recorded.project(position, heads);
    const auto theirs = recorded.project(position, recorded.heads(position));
    const double distance = relative_l2(ours.output.row(0), recorded.output(position));
    if (distance == 0) return;
    ++different;
    const std::size_t codes = count_different(ours.input.row(0), theirs.input.row(0));
    print_figures(
        fmt::format("official {}: attn.out is off by {:.1e}; {} of {} elements of the heads "
                    "differ, by at most {} "
                    "bfloat16 units, and {} of {} E4M3 codes that wo_b reads flipped",
                    recorded.name(position), distance,
                    count_different(heads, recorded.heads(position)), heads.size(),
                    max_bf16_units(heads, recorded.heads(position)), codes, ours.input.columns()));
    EXPECT_GT(codes, 0u) << recorded.name(position);
    EXPECT_LE(distance, 0.02 * std::sqrt(static_cast<double>(codes))) << recorded.name(position);
  });
  print_figures(
      fmt::format("official thin: {} rows of attn.out differ by flipped codes", different));
}

}  // namespace
}  // namespace locket::test_support
