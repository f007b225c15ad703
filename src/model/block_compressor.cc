#include "model/block_compressor.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "kernels/elementary.h"
#include "kernels/hadamard.h"
#include "kernels/rms_norm.h"
#include "kernels/rotary.h"
#include "model/linear.h"
#include "model/row_work.h"

namespace locket::model {
namespace {

using Overlap = BlockCompressorConfig::Overlap;

// About how many multiply-adds the weighing of one value is worth.
constexpr std::size_t kWorkPerWeighedValue = 64;

// The tokens of one part that are looked at: consecutive, up to its last one.
struct Run {
  const StepPart* part = nullptr;
  PendingGroup* pending = nullptr;
  std::int64_t first_position = 0;
  std::size_t count = 0;
  // The block before the first one that closes, [tokens][values | gates]; empty: there is none.
  std::vector<float> before = {};
};

// Of tokens whose rows are stored those of the last block count, complete or not: the next block
// needs them.
std::int64_t first_needed(const BlockCompressorConfig& config, const StepPart& part) {
  const std::int64_t first = part.first_position;
  const std::int64_t end = first + static_cast<std::int64_t>(part.count);
  const std::int64_t stored_end = std::clamp(part.write_from, first, end);
  if (config.overlap == Overlap::kNone || stored_end == first) return stored_end;
  const auto tokens = static_cast<std::int64_t>(config.tokens);
  return std::max(first, (stored_end - 1) / tokens * tokens);
}

std::size_t half_bytes(const BlockCompressorConfig& config) { return config.width * sizeof(float); }

// The ring's slot of a token: values and gates of its a-half.
std::span<std::byte> ring_part(const BlockCompressorConfig& config, const BlockPlace& place,
                               const StepPart& part, std::int64_t position) {
  return part.memory->ring_slot(place.ring, position)
      .subspan(place.ring_offset, block_ring_bytes(config));
}

std::vector<float> read_ring(const BlockCompressorConfig& config, const BlockPlace& place,
                             const StepPart& part) {
  std::vector<float> halves(config.tokens * 2 * config.width);
  for (std::size_t token = 0; token < config.tokens; ++token) {
    const auto slot = ring_part(config, place, part, static_cast<std::int64_t>(token));
    std::memcpy(halves.data() + token * 2 * config.width, slot.data(), slot.size());
  }
  return halves;
}

// The runs of the parts that have something to do.
std::vector<Run> plan_runs(const BlockCompressorConfig& config, const BlockPlace& place,
                           const BlockInput& input) {
  std::vector<Run> runs;
  const auto tokens = static_cast<std::int64_t>(config.tokens);
  for (std::size_t index = 0; index < input.step.parts.size(); ++index) {
    const StepPart& part = input.step.parts[index];
    if (!part.status) continue;
    const std::int64_t end = part.first_position + static_cast<std::int64_t>(part.count);
    const std::int64_t first = first_needed(config, part);
    if (first == end) continue;
    PendingGroup& pending = *input.pending[index];
    if (first % tokens == 0) pending = {};  // an open block that nobody looks at any more
    LOCKET_CHECK(pending.tokens(config.token_width()) == static_cast<std::size_t>(first % tokens));
    Run run = {.part = &part,
               .pending = &pending,
               .first_position = first,
               .count = static_cast<std::size_t>(end - first)};
    if (config.overlap == Overlap::kBlockBefore && first >= tokens) {
      run.before = read_ring(config, place, part);
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

// The runs' rows of u below each other.
tensor::FloatMatrix pick_tokens(const tensor::FloatMatrix& u, std::span<const Run> runs,
                                std::size_t count) {
  tensor::FloatMatrix picked(count, u.columns());
  std::size_t to = 0;
  for (const Run& run : runs) {
    const std::size_t first = run.part->first_row + run.part->count - run.count;
    for (std::size_t i = 0; i < run.count; ++i) {
      std::ranges::copy(u.row(first + i), picked.row(to++).begin());
    }
  }
  return picked;
}

// Values and gates of the runs' tokens join what waits.
void append_tokens(ForwardContext& context, const BlockCompressorConfig& config,
                   const BlockCompressorWeights& weights, const tensor::FloatMatrix& u,
                   std::span<const Run> runs) {
  std::size_t count = 0;
  for (const Run& run : runs) count += run.count;
  const bool is_whole = count == u.rows();
  const tensor::FloatMatrix picked = is_whole ? tensor::FloatMatrix() : pick_tokens(u, runs, count);
  const tensor::FloatMatrix& rows = is_whole ? u : picked;
  const std::size_t width = config.token_width();
  tensor::FloatMatrix values(count, width);
  tensor::FloatMatrix gates(count, width);
  linear(context, weights.wkv, rows, values);
  linear(context, weights.wgate, rows, gates);
  std::size_t row = 0;
  for (const Run& run : runs) {
    for (std::size_t i = 0; i < run.count; ++i, ++row) {
      const std::size_t place =
          (static_cast<std::size_t>(run.first_position) + i) % config.tokens * width;
      const auto gate = gates.row(row);
      for (std::size_t k = 0; k < width; ++k) gate[k] += weights.ape[place + k];
      const auto value = values.row(row);
      run.pending->values.insert(run.pending->values.end(), value.begin(), value.end());
      run.pending->gates.insert(run.pending->gates.end(), gate.begin(), gate.end());
    }
  }
}

// A block that is complete and whose row is to be written.
struct Block {
  const Run* run = nullptr;
  std::size_t first_token = 0;  // of what waits
  std::int64_t row = 0;
};

std::vector<Block> find_blocks(const BlockCompressorConfig& config, std::span<const Run> runs) {
  std::vector<Block> blocks;
  for (const Run& run : runs) {
    const std::size_t tokens = run.pending->tokens(config.token_width());
    const std::int64_t first_row = run.first_position / static_cast<std::int64_t>(config.tokens);
    for (std::size_t at = 0; at + config.tokens <= tokens; at += config.tokens) {
      const std::int64_t row = first_row + static_cast<std::int64_t>(at / config.tokens);
      if (row * static_cast<std::int64_t>(config.tokens) < run.part->write_from) continue;
      blocks.push_back({.run = &run, .first_token = at, .row = row});
    }
  }
  return blocks;
}

// What a row is mixed from: `width` values and gates each, in order.
struct Mixed {
  std::vector<const float*> values;
  std::vector<const float*> gates;

  void add(const float* value, const float* gate) {
    values.push_back(value);
    gates.push_back(gate);
  }
};

Mixed parts_of(const BlockCompressorConfig& config, const Block& block) {
  const PendingGroup& waiting = *block.run->pending;
  const std::size_t token_width = config.token_width();
  Mixed mixed;
  const auto add = [&](std::size_t token, std::size_t half) {
    const std::size_t at = token * token_width + half;
    mixed.add(waiting.values.data() + at, waiting.gates.data() + at);
  };
  if (config.overlap == Overlap::kBlockBefore) {
    const std::vector<float>& before = block.run->before;
    for (std::size_t token = 0; token < config.tokens; ++token) {
      if (block.first_token >= config.tokens) {
        add(block.first_token - config.tokens + token, 0);
      } else if (!before.empty()) {
        const float* half = before.data() + token * 2 * config.width;
        mixed.add(half, half + config.width);
      }
    }
  }
  const std::size_t own_half = token_width - config.width;
  for (std::size_t token = 0; token < config.tokens; ++token) {
    add(block.first_token + token, own_half);
  }
  return mixed;
}

// One channel: softmax of the gates, weighted sum of the values.
float weigh_channel(const Mixed& mixed, std::size_t channel, std::span<float> weights) {
  float maximum = mixed.gates[0][channel];
  for (const float* gate : mixed.gates) maximum = std::max(maximum, gate[channel]);
  float denominator = 0.0f;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] = kernels::exp_value(mixed.gates[i][channel] - maximum);
    denominator += weights[i];
  }
  float sum = 0.0f;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    sum += weights[i] / denominator * mixed.values[i][channel];
  }
  return sum;
}

// Rows of `blocks`, into the memory.
void write_blocks(const ForwardContext& context, const BlockCompressorConfig& config,
                  const BlockCompressorWeights& weights, const BlockPlace& place,
                  const std::vector<float>& frequencies, std::span<const Block> blocks) {
  std::vector<std::int64_t> positions;
  for (const Block& block : blocks) {
    positions.push_back(block.row * static_cast<std::int64_t>(config.tokens));
  }
  const RotaryTable table = rotary_table(frequencies, positions);
  const kernels::Rounding rounding = context.numerics.rounding();
  const std::size_t work = 2 * config.tokens * config.width * kWorkPerWeighedValue;
  for_each_row(context, blocks.size(), work, [&](std::size_t i) {
    const Mixed mixed = parts_of(config, blocks[i]);
    std::vector<float> scratch(mixed.gates.size());
    std::vector<float> row(config.width);
    for (std::size_t k = 0; k < row.size(); ++k) row[k] = weigh_channel(mixed, k, scratch);
    kernels::rms_norm(row, weights.norm, config.norm_eps, rounding, row);
    kernels::rotate_pairs(std::span(row).last(config.rope_dim), table.cos.row(i), table.sin.row(i),
                          kernels::RotaryDirection::kForward, rounding);
    if (config.spread == BlockCompressorConfig::Spread::kHadamard) kernels::hadamard_transform(row);
    kernels::encode_row(place.format, row,
                        blocks[i].run->part->memory->row(place.stream, blocks[i].row));
  });
}

// The a-halves of the newest complete block go into the ring; the open block goes on waiting.
void keep_rest(const BlockCompressorConfig& config, const BlockPlace& place, const Run& run) {
  PendingGroup& pending = *run.pending;
  const std::size_t width = config.token_width();
  const std::size_t closed = pending.tokens(width) / config.tokens * config.tokens;
  if (closed == 0) return;
  if (config.overlap == Overlap::kBlockBefore) {
    for (std::size_t token = 0; token < config.tokens; ++token) {
      const std::size_t at = (closed - config.tokens + token) * width;
      const auto slot = ring_part(config, place, *run.part, static_cast<std::int64_t>(token));
      std::memcpy(slot.data(), pending.values.data() + at, half_bytes(config));
      std::memcpy(slot.data() + half_bytes(config), pending.gates.data() + at, half_bytes(config));
    }
  }
  // Fresh vectors: what waits is small, and a slice's capacity must not stay with the session.
  const auto used = static_cast<std::ptrdiff_t>(closed * width);
  pending.values = {pending.values.begin() + used, pending.values.end()};
  pending.gates = {pending.gates.begin() + used, pending.gates.end()};
}

}  // namespace

std::size_t block_ring_bytes(const BlockCompressorConfig& config) {
  return config.overlap == Overlap::kNone ? 0 : 2 * half_bytes(config);
}

void compress_blocks(ForwardContext& context, const BlockCompressorConfig& config,
                     const BlockCompressorWeights& weights, const BlockPlace& place,
                     const BlockInput& input) {
  const std::vector<Run> runs = plan_runs(config, place, input);
  if (runs.empty()) return;
  append_tokens(context, config, weights, input.u, runs);
  const std::vector<Block> blocks = find_blocks(config, runs);
  write_blocks(context, config, weights, place, input.frequencies, blocks);
  for (const Run& run : runs) keep_rest(config, place, run);
}

}  // namespace locket::model
