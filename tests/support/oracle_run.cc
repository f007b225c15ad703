#include "tests/support/oracle_run.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>
#include <random>
#include <stdexcept>

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
                                            kernels::RowFormat format, std::int64_t width,
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

cache::SequenceMemory reserved_memory(OracleModel& oracle, std::size_t positions) {
  cache::SequenceMemory memory(oracle.model().memory().layout, oracle.pool());
  require_success(memory.reserve_tokens(static_cast<std::int64_t>(positions)));
  return memory;
}

}  // namespace

LayerStack::LayerStack(OracleModel& oracle, std::span<const std::int32_t> tokens)
    : oracle_(oracle),
      tokens_(tokens.begin(), tokens.end()),
      memory_(reserved_memory(oracle, tokens.size())),
      view_(memory_.view()) {}

LayeredRun LayerStack::run(const StreamChange& change) {
  const model::V41Model& model = oracle_.model();
  const auto streams = to_size(oracle_.config().stream_count);
  model::ResidualRows rows = {.streams = embed(oracle_.weights().embedding, tokens_, streams),
                              .pre = {tokens_.size(), streams}};
  for (std::size_t i = 0; i < rows.count(); ++i) rows.pre.row(i)[0] = 1.0f;
  if (change) change(-1, rows.streams);
  model::SequenceState state = model.make_state();
  model::Step step =
      model.make_step({{.memory = &view_, .tokens = tokens_, .count = tokens_.size()}});
  before_.clear();
  LayeredRun run;
  for (std::int64_t layer = 0; layer < oracle_.config().layer_count; ++layer) {
    before_.push_back({.rows = rows, .selection = step.selection, .pool = step.pool});
    Capture capture;
    model::ForwardContext context = oracle_.context();
    context.observer = &capture;
    model::SequenceState* const states[] = {&state};
    model.run_layer(context, layer, step, states, rows);
    require_success(step.parts.front().status);
    collect_stored(oracle_, layer, view_, capture, tokens_.size(), run.stored);
    if (change) change(layer, rows.streams);
  }
  before_.push_back({.rows = rows, .selection = {}, .pool = {}});
  model::ForwardContext context = oracle_.context();
  run.logits = model.logits(context, rows);
  return run;
}

tensor::FloatMatrix LayerStack::rerun(
    std::int64_t first, const std::function<void(tensor::FloatMatrix& streams)>& change) {
  const model::V41Model& model = oracle_.model();
  const State& start = before_.at(to_size(first));
  model::ResidualRows rows = start.rows;
  change(rows.streams);
  model::SequenceState state = model.make_state();
  model::Step step =
      model.make_step({{.memory = &view_, .tokens = tokens_, .count = tokens_.size()}});
  step.selection = start.selection;
  step.pool = start.pool;
  model::ForwardContext context = oracle_.context();
  for (std::int64_t layer = first; layer < oracle_.config().layer_count; ++layer) {
    model::SequenceState* const states[] = {&state};
    model.run_layer(context, layer, step, states, rows);
    require_success(step.parts.front().status);
  }
  return model.logits(context, rows);
}

LayeredRun run_layers(OracleModel& oracle, std::span<const std::int32_t> tokens,
                      const StreamChange& change) {
  return LayerStack(oracle, tokens).run(change);
}

StreamChange relative_noise(std::uint32_t seed, float size) {
  return [engine = std::mt19937(seed), size](std::int64_t, tensor::FloatMatrix& streams) mutable {
    for (float& value : streams.values()) {
      const float unit = static_cast<float>(engine()) / 2147483648.0f - 1.0f;
      value *= 1.0f + size * unit;
    }
  };
}

float next_bf16(float value, UnitStep step) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>(step == UnitStep::kUp ? bits + 0x10000u : bits - 0x10000u);
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
