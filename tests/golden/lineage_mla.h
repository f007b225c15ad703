// What the generations with latent attention are compared in: recorded logits, layers, memory and
// choices of transformers, in mode `plain`.
#pragma once

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/config_json.h"
#include "model/generations/mla_config.h"
#include "model/rotary_table.h"
#include "tests/support/lineage_oracle.h"
#include "tests/support/oracle_compare.h"

namespace locket::test_support {

inline constexpr double kLineageTolerance = 1e-5;

inline void expect_recorded_frequencies(const std::string& generation) {
  const auto file = checkpoint::ConfigFile::open(lineage_checkpoint(generation) / "config.json");
  ASSERT_TRUE(file);
  const auto config = model::read_mla_config(file->root());
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(model::rotary_frequencies(config->rotary),
            LineageModel::get(generation).vectors().at("rope.inv_freq").floats);
}

// Every prompt, in one piece and in slices.
inline void expect_recorded_logits(const std::string& generation, std::size_t prompt_count) {
  LineageModel& lineage = LineageModel::get(generation);
  const std::vector<LineagePrompt> prompts = lineage_prompts(lineage.vectors());
  ASSERT_EQ(prompts.size(), prompt_count);
  for (const LineagePrompt& prompt : prompts) {
    const LineageRun run = run_lineage(lineage, prompt, 0);
    expect_same_logits(generation, prompt, run, kLineageTolerance);
    for (const std::uint32_t seed : {1u, 2u, 3u}) {
      const LineageRun sliced = run_lineage(lineage, prompt, seed);
      EXPECT_TRUE(std::ranges::equal(run.logits.values(), sliced.logits.values()))
          << prompt.name << ": slices of seed " << seed << " change the logits";
    }
  }
}

class MlaInsides {
 public:
  MlaInsides(const std::string& generation, const LineagePrompt& prompt)
      : lineage_(LineageModel::get(generation)),
        inside_(prompt.inside),
        run_(run_lineage(lineage_, prompt, 5)) {}

  // Residuals, what attention and feed-forward part add; recorded of the short prompt only.
  void expect_layers() const {
    for (std::int64_t layer = 0; layer < layers(); ++layer) {
      const std::map<std::string, std::string> names = {
          {"attention", "attn_out"}, {"ffn", "mlp_out"}, {"streams", "out"}};
      for (const auto& [ours, theirs] : names) {
        expect_rows(run_.floats.at(fmt::format("l{}.{}", layer, ours)), recorded(layer, theirs));
      }
    }
  }

  void expect_memory(const std::string& when) const {
    const LineageMemory& memory = when == "cache" ? run_.after_prompt : run_.after_decode;
    const std::size_t per_layer = memory.streams.size() / static_cast<std::size_t>(layers());
    for (std::int64_t layer = 0; layer < layers(); ++layer) {
      const std::size_t first = static_cast<std::size_t>(layer) * per_layer;
      const std::string name = fmt::format("{}.{}.l{}.", inside_, when, layer);
      const std::size_t rank = lineage_.vectors().matrix(name + "latent").columns();
      const std::size_t rope = lineage_.vectors().matrix(name + "rope_key").columns();
      const tensor::FloatMatrix& rows = memory.streams[first];
      ASSERT_EQ(rows.columns(), rank + rope);
      expect_all_rows(columns_of(rows, 0, rank), name + "latent");
      expect_all_rows(columns_of(rows, rank, rope), name + "rope_key");
      if (per_layer == 2) expect_all_rows(memory.streams[first + 1], name + "index_key");
    }
  }

  // Chosen experts and their weights; returns how many layers have some.
  std::size_t expect_experts() const {
    std::size_t compared = 0;
    for (std::int64_t layer = 0; layer < layers(); ++layer) {
      if (!lineage_.vectors().has(recorded(layer, "router_ids"))) continue;
      ++compared;
      expect_experts(layer);
    }
    return compared;
  }

  // Chosen tokens; returns how many layers choose.
  std::size_t expect_tokens() const {
    std::size_t compared = 0;
    for (std::int64_t layer = 0; layer < layers(); ++layer) {
      const std::string name = recorded(layer, "index_ids");
      if (!lineage_.vectors().has(name)) continue;
      ++compared;
      const OracleTensor& theirs = lineage_.vectors().at(name);
      const auto& ours = run_.integers.at(fmt::format("l{}.index", layer));
      for (std::size_t position = 0; position < theirs.rows(); ++position) {
        EXPECT_EQ(chosen(ours[position]), chosen(row_of(theirs, position)))
            << name << " position " << position;
      }
    }
    return compared;
  }

 private:
  using Ids = std::vector<std::int32_t>;

  std::int64_t layers() const { return lineage_.model().shape().layer_count; }
  std::string recorded(std::int64_t layer, const std::string& what) const {
    return fmt::format("{}.l{}.{}", inside_, layer, what);
  }
  static Ids row_of(const OracleTensor& tensor, std::size_t row) {
    const auto first = tensor.integers.begin() + static_cast<std::ptrdiff_t>(row * tensor.width());
    return {first, first + static_cast<std::ptrdiff_t>(tensor.width())};
  }
  static Ids chosen(Ids ids) {
    std::erase(ids, -1);
    return ids;
  }

  void expect_experts(std::int64_t layer) const {
    const OracleTensor& ids = lineage_.vectors().at(recorded(layer, "router_ids"));
    const tensor::FloatMatrix weights =
        lineage_.vectors().matrix(recorded(layer, "router_weights"));
    const auto& our_ids = run_.integers.at(fmt::format("l{}.experts", layer));
    const tensor::FloatMatrix& our_weights =
        run_.floats.at(fmt::format("l{}.expert_weights", layer));
    for (std::size_t position = 0; position < ids.rows(); ++position) {
      std::map<std::int32_t, float> ours;
      for (std::size_t i = 0; i < ids.width(); ++i) {
        ours[our_ids[position][i]] = our_weights.row(position)[i];
      }
      const Ids theirs = row_of(ids, position);
      for (std::size_t i = 0; i < theirs.size(); ++i) {
        ASSERT_TRUE(ours.contains(theirs[i]))
            << recorded(layer, "router_ids") << " position " << position;
        EXPECT_NEAR(ours[theirs[i]], weights.row(position)[i],
                    1e-5 * std::abs(weights.row(position)[i]));
      }
    }
  }

  // The first rows of `ours`, as many as were recorded.
  void expect_rows(const tensor::FloatMatrix& ours, const std::string& name) const {
    const tensor::FloatMatrix theirs = lineage_.vectors().matrix(name);
    ASSERT_LE(theirs.rows(), ours.rows()) << name;
    for (std::size_t row = 0; row < theirs.rows(); ++row) {
      EXPECT_LE(relative_l2(ours.row(row), theirs.row(row)), kLineageTolerance)
          << name << " row " << row;
    }
  }
  void expect_all_rows(const tensor::FloatMatrix& ours, const std::string& name) const {
    EXPECT_LE(largest_distance(ours, lineage_.vectors().matrix(name)), kLineageTolerance) << name;
  }

  LineageModel& lineage_;
  std::string inside_;
  LineageRun run_;
};

struct InsideCounts {
  std::size_t expert_layers = 0;
  std::size_t indexed_layers = 0;
};

// Both prompts whose insides were recorded.
inline void expect_recorded_insides(const std::string& generation, const InsideCounts& counts) {
  std::size_t compared = 0;
  for (const LineagePrompt& prompt : lineage_prompts(LineageModel::get(generation).vectors())) {
    if (prompt.inside.empty()) continue;
    ++compared;
    const MlaInsides insides(generation, prompt);
    EXPECT_EQ(insides.expect_experts(), counts.expert_layers) << prompt.inside;
    EXPECT_EQ(insides.expect_tokens(), counts.indexed_layers) << prompt.inside;
    insides.expect_memory("cache");
    if (prompt.inside != "short") continue;
    insides.expect_memory("cache_after");
    insides.expect_layers();
  }
  EXPECT_EQ(compared, 2U);
}

// Distances of the logits when the memory is as it is served. Where a router's or an indexer's
// choice is near, a rounding may move it and then moves the logits far: the median is what counts.
struct ServedDistance {
  double median = 0;
  double largest = 0;
};

inline ServedDistance served_distance(const std::string& generation) {
  LineageModel& wide = LineageModel::get(generation, model::NumericsMode::kWide);
  std::vector<double> distances;
  for (const LineagePrompt& prompt : lineage_prompts(wide.vectors())) {
    const LineageRun run = run_lineage(wide, prompt, 4);
    for (std::size_t row = 0; row < prompt.positions.size(); ++row) {
      const auto position = static_cast<std::size_t>(prompt.positions[row]);
      distances.push_back(relative_l2(run.logits.row(position), prompt.logits.row(row)));
    }
  }
  const ServedDistance distance = {.median = median(distances),
                                   .largest = *std::ranges::max_element(distances)};
  print_figures(
      fmt::format("{} wide: distance from float32 rows {:.2e} in the middle, {:.2e} at most",
                  generation, distance.median, distance.largest));
  return distance;
}

}  // namespace locket::test_support
