#include "tests/support/oracle_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <stdexcept>

#include "cache/sequence_memory.h"
#include "model/embedding.h"

namespace locket::test_support {
namespace {

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

void require_success(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

template <class T>
std::vector<std::vector<float>> split(std::span<const T> values, std::size_t rows) {
  std::vector<std::vector<float>> result(rows);
  const std::size_t width = rows == 0 ? 0 : values.size() / rows;
  for (std::size_t row = 0; row < rows; ++row) {
    for (const T value : values.subspan(row * width, width)) {
      result[row].push_back(static_cast<float>(value));
    }
  }
  return result;
}

// Rows or keys that `layer` wrote.
std::vector<std::vector<float>> stream_rows(const cache::KvView& view, int stream,
                                            model::RowFormat format, std::int64_t width,
                                            std::int64_t count) {
  std::vector<std::vector<float>> rows;
  for (std::int64_t row = 0; row < count; ++row) {
    rows.emplace_back(to_size(width));
    decode_row(format, view.row(static_cast<std::size_t>(stream), row), rows.back());
  }
  return rows;
}

void collect_stored(const OracleModel& oracle, std::int64_t layer, const cache::KvView& view,
                    const Capture& capture, std::size_t positions,
                    std::vector<StoredRows>& stored) {
  const model::V41Config& config = oracle.config();
  const model::LayerRole& role = oracle.role(layer);
  const auto add = [&](std::string_view what, std::int64_t tokens_per_row, auto rows) {
    stored.push_back({.name = fmt::format("{} of layer {}", what, layer),
                      .tokens_per_row = tokens_per_row,
                      .rows = std::move(rows)});
  };
  if (role.writes_rows) {
    const model::V41Memory& memory = oracle.model().memory();
    const model::LayerMemory& place = memory.layers[to_size(layer)];
    const std::int64_t count = static_cast<std::int64_t>(positions) / role.ratio;
    add("rows", role.ratio,
        stream_rows(view, place.rows, memory.formats.rows, config.head_dim, count));
    add("index keys", role.ratio,
        stream_rows(view, place.index_keys, memory.formats.index_keys, config.index_head_dim,
                    count));
  }
  add("window", 1, split(capture.floats("window"), positions));
  if (role.selects_rows) add("chosen rows", 1, split(capture.integers("index"), positions));
  if (role.builds_pool) add("pool", 1, split(capture.integers("pool"), positions));
  add("experts", 1, split(capture.integers("experts"), positions));
}

}  // namespace

LayeredRun run_layers(OracleModel& oracle, std::span<const std::int32_t> tokens,
                      const StreamChange& change) {
  const model::V41Model& model = oracle.model();
  const auto streams = to_size(oracle.config().stream_count);
  cache::SequenceMemory memory(model.memory().layout, oracle.pool());
  require_success(memory.reserve_tokens(static_cast<std::int64_t>(tokens.size())));
  const cache::KvView view = memory.view();
  model::ResidualRows rows = {.streams = embed(oracle.weights().embedding, tokens, streams),
                              .pre = {tokens.size(), streams}};
  for (std::size_t i = 0; i < rows.count(); ++i) rows.pre.row(i)[0] = 1.0f;
  if (change) change(-1, rows.streams);
  model::V41SequenceState state = model.make_state();
  model::Step step = model.make_step(view, 0, tokens.size(), 0);
  LayeredRun run;
  for (std::int64_t layer = 0; layer < oracle.config().layer_count; ++layer) {
    Capture capture;
    model::ForwardContext context = oracle.context();
    context.observer = &capture;
    require_success(model.run_layer(context, layer, tokens, state, step, rows));
    collect_stored(oracle, layer, view, capture, tokens.size(), run.stored);
    if (change) change(layer, rows.streams);
  }
  model::ForwardContext context = oracle.context();
  run.logits = model.logits(context, rows, 0);
  return run;
}

StreamChange relative_noise(std::uint32_t seed, float size) {
  return [engine = std::mt19937(seed), size](std::int64_t, tensor::FloatMatrix& streams) mutable {
    for (float& value : streams.values()) {
      const float unit = static_cast<float>(engine()) / 2147483648.0f - 1.0f;
      value *= 1.0f + size * unit;
    }
  };
}

StreamChange unit_noise(std::uint32_t seed, double chance, std::size_t position) {
  const auto limit = static_cast<std::uint32_t>(chance * 4294967296.0);
  return [engine = std::mt19937(seed), limit, position](std::int64_t,
                                                        tensor::FloatMatrix& streams) mutable {
    for (float& value : streams.row(position)) {
      if (engine() >= limit) continue;
      const auto bits = std::bit_cast<std::uint32_t>(value);
      value = std::bit_cast<float>((engine() & 1u) != 0 ? bits + 0x10000u : bits - 0x10000u);
    }
  };
}

std::optional<StoredDifference> first_difference(const std::vector<StoredRows>& ours,
                                                 const std::vector<StoredRows>& theirs,
                                                 std::int64_t last_position) {
  for (std::size_t i = 0; i < std::min(ours.size(), theirs.size()); ++i) {
    if (ours[i].name != theirs[i].name) throw std::runtime_error("runs hold different things");
    const std::size_t rows = std::min(ours[i].rows.size(), theirs[i].rows.size());
    for (std::size_t row = 0; row < rows; ++row) {
      const std::int64_t position =
          (static_cast<std::int64_t>(row) + 1) * ours[i].tokens_per_row - 1;
      if (position > last_position || ours[i].rows[row] == theirs[i].rows[row]) continue;
      const auto& a = ours[i].rows[row];
      const auto& b = theirs[i].rows[row];
      std::size_t values = a.size() == b.size() ? 0 : 1;
      for (std::size_t k = 0; k < std::min(a.size(), b.size()); ++k) values += a[k] != b[k] ? 1 : 0;
      return StoredDifference{.name = ours[i].name, .position = position, .values = values};
    }
  }
  return std::nullopt;
}

std::string describe(const std::optional<StoredDifference>& difference) {
  if (!difference) return "nothing stored differs";
  return fmt::format("{}, position {}, {} values", difference->name, difference->position,
                     difference->values);
}

}  // namespace locket::test_support
