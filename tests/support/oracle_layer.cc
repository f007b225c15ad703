#include "tests/support/oracle_layer.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace locket::test_support {
namespace {

std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

void require_success(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message);
}

cache::SequenceMemory reserved_memory(OracleModel& oracle, std::size_t positions) {
  cache::SequenceMemory memory(oracle.model().memory().layout, oracle.pool());
  require_success(memory.reserve_tokens(static_cast<std::int64_t>(positions)));
  return memory;
}

tensor::FloatMatrix one_row(std::span<const float> values) {
  tensor::FloatMatrix matrix(1, values.size());
  std::ranges::copy(values, matrix.row(0).begin());
  return matrix;
}

std::vector<float> decoded(kernels::RowFormat format, std::span<const std::byte> bytes,
                           std::int64_t width) {
  std::vector<float> values(to_size(width));
  kernels::decode_row(format, bytes, values);
  return values;
}

std::vector<std::uint8_t> as_numbers(std::span<const std::byte> bytes) {
  std::vector<std::uint8_t> numbers;
  for (const std::byte byte : bytes) numbers.push_back(std::to_integer<std::uint8_t>(byte));
  return numbers;
}

}  // namespace

LayerBench::LayerBench(OracleModel& oracle, std::int64_t layer, std::size_t positions)
    : oracle_(oracle),
      layer_(layer),
      memory_(reserved_memory(oracle, positions)),
      view_(memory_.view()),
      state_(oracle.model().make_state()) {}

const model::LayerMemory& LayerBench::place() const {
  return oracle_.model().memory().layers[to_size(layer_)];
}

model::Step LayerBench::make_step(std::int64_t position, std::span<const std::int32_t> tokens,
                                  const Reused& reused) const {
  model::Step step = oracle_.model().make_step(
      {{.memory = &view_, .tokens = tokens, .first_position = position, .count = 1}});
  const model::LayerRole& role = oracle_.role(layer_);
  if (role.ratio > 0 && !role.selects_rows) step.selection.rows = {reused.rows};
  if (role.uses_pool) {
    step.pool.positions = {{.holds_all = false, .chosen = reused.pool_blocks}};
  }
  return step;
}

void LayerBench::run(const Input& input, Capture& result) {
  const auto position = static_cast<std::int64_t>(input.tokens.size()) - 1;
  model::Step step = make_step(position, input.tokens, input.reused);
  model::ResidualRows rows = {.streams = one_row(input.streams),
                              .pre = {1, to_size(oracle_.config().stream_count)}};
  if (input.pre.empty()) {
    rows.pre.row(0)[0] = 1.0f;
  } else {
    std::ranges::copy(input.pre, rows.pre.row(0).begin());
  }
  model::ForwardContext context = oracle_.context();
  context.observer = &result;
  model::SequenceState* const states[] = {&state_};
  oracle_.model().run_layer(context, layer_, step, states, rows);
  require_success(step.parts.front().status);
}

void LayerBench::write_rows(std::int64_t position, std::span<const float> u, Capture& result) {
  const model::CompressorConfig config = compressor_config(oracle_.config(), layer_);
  const model::CompressorWeights& weights = *oracle_.layer_weights(layer_).compressor;
  model::ForwardContext context = oracle_.context();
  const model::CompressorRun runs[] = {{&state_.pending[to_size(layer_)], 1}};
  const tensor::FloatMatrix latents = compress(context, config, weights, one_row(u), runs);
  result.on_floats({.name = "latents", .layer = layer_, .first_position = position},
                   latents.values());
  const std::vector<float> frequencies = compressed_frequencies(oracle_.config());
  model::write_rows(context, config, weights, latents,
                    {.targets = {{.memory = &view_,
                                  .first_row = position / oracle_.role(layer_).ratio,
                                  .count = latents.rows()}},
                     .streams = place(),
                     .formats = oracle_.model().memory().formats,
                     .frequencies = frequencies});
}

void LayerBench::run_attention(std::int64_t position, std::span<const float> u,
                               const Reused& reused, Capture& result) {
  model::Step step = make_step(position, {}, reused);
  if (oracle_.role(layer_).writes_rows) write_rows(position, u, result);
  model::ForwardContext context = oracle_.context();
  context.observer = &result;
  const tensor::FloatMatrix y =
      csa2_attention(context, attention_config(oracle_.config(), layer_),
                     oracle_.layer_weights(layer_).attention, one_row(u), place(), step);
  result.on_floats({.name = "attention", .layer = layer_, .first_position = position}, y.values());
}

void LayerBench::set_window(std::int64_t position, std::span<const float> values) {
  encode_row(oracle_.model().memory().formats.window, values,
             view_.ring_slot(to_size(place().ring), position));
}

void LayerBench::set_row(std::int64_t row, std::span<const float> values) {
  encode_row(oracle_.model().memory().formats.rows, values, view_.row(to_size(place().rows), row));
}

void LayerBench::set_key(std::int64_t row, std::span<const float> values) {
  encode_row(oracle_.model().memory().formats.index_keys, values,
             view_.row(to_size(place().index_keys), row));
}

std::vector<float> LayerBench::window(std::int64_t position) const {
  return decoded(oracle_.model().memory().formats.window,
                 view_.ring_slot(to_size(place().ring), position), oracle_.config().head_dim);
}

std::vector<float> LayerBench::row(std::int64_t row) const {
  return decoded(oracle_.model().memory().formats.rows, view_.row(to_size(place().rows), row),
                 oracle_.config().head_dim);
}

std::vector<float> LayerBench::key(std::int64_t row) const {
  return decoded(oracle_.model().memory().formats.index_keys,
                 view_.row(to_size(place().index_keys), row), oracle_.config().index_head_dim);
}

std::vector<std::uint8_t> LayerBench::window_bytes(std::int64_t position) const {
  return as_numbers(view_.ring_slot(to_size(place().ring), position));
}

std::vector<std::uint8_t> LayerBench::row_bytes(std::int64_t row) const {
  return as_numbers(view_.row(to_size(place().rows), row));
}

std::vector<std::uint8_t> LayerBench::key_bytes(std::int64_t row) const {
  return as_numbers(view_.row(to_size(place().index_keys), row));
}

std::vector<std::int32_t> pool_blocks(std::span<const std::uint8_t> flags, std::int64_t visible,
                                      std::int64_t block_size) {
  std::vector<std::int32_t> blocks;
  for (std::size_t row = 0; row < flags.size(); ++row) {
    const std::int64_t block = static_cast<std::int64_t>(row) / block_size;
    const bool is_new = blocks.empty() || blocks.back() != block;
    if (flags[row] != 0 && is_new && block * block_size < visible) {
      blocks.push_back(static_cast<std::int32_t>(block));
    }
  }
  return blocks;
}

std::vector<std::int32_t> chosen_rows(std::span<const std::int32_t> recorded) {
  std::vector<std::int32_t> rows;
  std::ranges::copy_if(recorded, std::back_inserter(rows),
                       [](std::int32_t row) { return row >= 0; });
  return rows;
}

}  // namespace locket::test_support
