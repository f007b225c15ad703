#include "tests/support/oracle_official.h"

#include <algorithm>
#include <fmt/format.h>
#include <stdexcept>

#include "kernels/sparse_attention.h"
#include "tests/support/oracle_manifest.h"

namespace locket::test_support {
namespace {

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

std::vector<std::int32_t> joined(std::vector<std::int32_t> first,
                                 std::span<const std::int32_t> second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

std::vector<std::int32_t> first_steps(std::span<const std::int32_t> appended) {
  return {appended.begin(), appended.begin() + 2};
}

std::vector<std::vector<float>> copied(const std::vector<std::span<const float>>& rows) {
  std::vector<std::vector<float>> result;
  for (const auto row : rows) result.emplace_back(row.begin(), row.end());
  return result;
}

std::vector<float> padded(std::span<const std::int32_t> values, std::size_t width) {
  std::vector<float> result(values.begin(), values.end());
  result.resize(width, -1.0f);
  return result;
}

// Tile number of every row in use.
std::vector<std::size_t> tiles_of(const TilePlan& plan) {
  std::vector<std::size_t> tiles;
  for (const std::size_t slot : plan.window) tiles.push_back(slot / kernels::kAttentionTile);
  for (const std::size_t slot : plan.selected) tiles.push_back(slot / kernels::kAttentionTile);
  return tiles;
}

TilePlan plan_with(std::size_t first_slot, std::size_t window_slots, const TilePlace& place) {
  TilePlan plan;
  const std::size_t used = std::min(place.position + 1, place.window);
  for (std::size_t i = 0; i < used; ++i) plan.window.push_back(first_slot + i);
  for (std::size_t i = 0; i < place.selected; ++i) plan.selected.push_back(window_slots + i);
  plan.slots = window_slots + place.selected;
  return plan;
}

}  // namespace

std::vector<std::int32_t> OfficialPrompt::tokens() const { return joined(prompt, appended); }

std::vector<OfficialPrompt> read_official_prompts(std::string_view shape) {
  const OracleFile file(oracle_path(fmt::format("official/{}.safetensors", shape)));
  const nlohmann::json manifest = read_oracle_manifest("official/manifest.json");
  std::vector<OfficialPrompt> prompts;
  for (const auto& [name, entry] : manifest[std::string(shape)]["prompts"].items()) {
    OfficialPrompt one;
    one.name = name;
    one.is_traced = entry["traced"];
    one.first_position = entry["logits_from_position"];
    one.prefill_noise = entry["exact_prefill_against_official_prefill"]["max_abs"];
    one.decode_noise = entry["exact_decode_against_official_decode"]["max_abs"];
    const std::string prefix = fmt::format("p{}.", name);
    one.prompt = file.at(prefix + "tokens").integers;
    one.appended = file.at(prefix + "decode.tokens").integers;
    one.logits = file.matrix(prefix + "logits");
    one.exact_logits = file.matrix(prefix + "exact.logits");
    one.decode_logits = file.matrix(prefix + "decode.logits");
    one.exact_decode_logits = file.matrix(prefix + "exact.decode.logits");
    prompts.push_back(std::move(one));
  }
  if (prompts.empty()) throw std::runtime_error(fmt::format("{} has no prompts", shape));
  std::ranges::stable_sort(prompts, {}, [](const auto& one) { return one.prompt.size(); });
  return prompts;
}

OracleFile read_official_trace_file(std::string_view shape) {
  return OracleFile(oracle_path(fmt::format("official/{}.trace.safetensors", shape)));
}

OfficialTrace::OfficialTrace(const OracleFile& trace_file, const OfficialPrompt& prompt)
    : name_(prompt.name),
      tokens_(joined(prompt.prompt, first_steps(prompt.appended))),
      trace_(trace_file, fmt::format("p{}.", prompt.name),
             {fmt::format("p{}.decode.0.", prompt.name), fmt::format("p{}.decode.1.", prompt.name)},
             prompt.prompt.size()) {}

LayerBench::Reused OfficialTrace::reused(const model::V41Config& config, std::int64_t layer,
                                         std::size_t position) const {
  const model::LayerRole& role = config.layers[to_size(layer)];
  LayerBench::Reused reused;
  if (role.ratio > 0 && !role.selects_rows) {
    reused.rows = chosen_rows(trace_.integers(
        fmt::format("layers.{}.attn.indexer.selected", role.index_source), position));
  }
  if (role.uses_pool) {
    const std::int64_t visible = (static_cast<std::int64_t>(position) + 1) / role.ratio;
    reused.pool_blocks = pool_blocks(
        trace_.bytes(fmt::format("layers.{}.attn.indexer.candidates", config.boundary), position),
        visible, config.pool_block_size);
  }
  return reused;
}

std::vector<StoredRows> OfficialTrace::stored(const model::V41Config& config) const {
  std::vector<StoredRows> stored;
  for (std::int64_t layer = 0; layer < config.layer_count; ++layer) {
    const model::LayerRole& role = config.layers[to_size(layer)];
    const std::string prefix = fmt::format("layers.{}.attn.", layer);
    const auto add = [&](std::string_view what, std::int64_t tokens_per_row,
                         std::vector<std::vector<float>> rows) {
      stored.push_back({.name = fmt::format("{} of layer {}", what, layer),
                        .tokens_per_row = tokens_per_row,
                        .rows = std::move(rows)});
    };
    std::vector<std::vector<float>> chosen;
    std::vector<std::vector<float>> pool;
    std::vector<std::vector<float>> experts;
    for (std::size_t position = 0; position < trace_.positions(); ++position) {
      chosen.push_back(padded(trace_.integers(prefix + "indexer.selected", position),
                              to_size(config.index_topk)));
      experts.push_back(
          padded(trace_.integers(fmt::format("layers.{}.ffn.gate.indices", layer), position),
                 to_size(config.experts_per_token)));
      const std::int64_t visible =
          role.ratio == 0 ? 0 : (static_cast<std::int64_t>(position) + 1) / role.ratio;
      pool.push_back(padded(pool_blocks(trace_.bytes(prefix + "indexer.candidates", position),
                                        visible, config.pool_block_size),
                            to_size(config.pool_blocks)));
    }
    if (role.writes_rows) {
      add("rows", role.ratio, copied(trace_.float_rows(prefix + "main_rows")));
      add("index keys", role.ratio, copied(trace_.float_rows(prefix + "indexer.keys")));
    }
    add("window", 1, copied(trace_.float_rows(prefix + "window_rows")));
    if (role.selects_rows) add("chosen rows", 1, std::move(chosen));
    if (role.builds_pool) add("pool", 1, std::move(pool));
    add("experts", 1, std::move(experts));
  }
  return stored;
}

TilePlan our_tile_plan(const TilePlace& place) { return plan_with(0, place.window, place); }

TilePlan official_tile_plan(const TilePlace& place) {
  if (place.position < place.prompt_tokens) {
    return plan_with(0, std::min(place.prompt_tokens, place.window), place);
  }
  const std::size_t used = std::min(place.position + 1, place.window);
  return plan_with(place.window - used, place.window, place);
}

bool has_same_tiles(const TilePlan& a, const TilePlan& b) {
  const std::vector<std::size_t> tiles_a = tiles_of(a);
  const std::vector<std::size_t> tiles_b = tiles_of(b);
  for (std::size_t i = 1; i < tiles_a.size(); ++i) {
    if ((tiles_a[i] == tiles_a[i - 1]) != (tiles_b[i] == tiles_b[i - 1])) return false;
  }
  return true;
}

}  // namespace locket::test_support
