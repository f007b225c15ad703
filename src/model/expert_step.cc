#include "model/expert_step.h"

#include <algorithm>
#include <array>
#include <memory>

#include "base/check.h"
#include "kernels/kernel_table.h"
#include "kernels/quantize.h"
#include "kernels/streams.h"
#include "kernels/swiglu.h"
#include "model/even_shares.h"
#include "model/row_work.h"

namespace locket::model {
namespace {

using kernels::ActivationRows;
using kernels::Rounding;
using kernels::WeightMatrix;

constexpr std::size_t kGroupRows = 16;  // a row group of weight_matrix.h
// Gated values that are quantized together, so that one thread makes them all.
constexpr std::size_t kUnitRows = 32;
constexpr std::size_t kUnitGroups = kUnitRows / kGroupRows;

std::size_t unit_count(const WeightMatrix& w) { return (w.rows + kUnitRows - 1) / kUnitRows; }

// Reading a byte of weights takes a thread as long as this many multiply-adds of bfloat16 pairs.
constexpr std::uint64_t kMacsPerByte = 5;

std::uint64_t product_cost(const WeightMatrix& w, std::size_t tokens) {
  return std::max<std::uint64_t>(kMacsPerByte * w.byte_count(), w.rows * w.columns * tokens);
}

void round_row(std::span<float> row, Rounding rounding) {
  if (rounding == Rounding::kBf16) kernels::round_to_bf16(row);
}

std::size_t most_tokens(std::span<const ExpertRows> experts) {
  std::size_t most = 0;
  for (const ExpertRows& expert : experts) most = std::max(most, expert.tokens.size());
  return most;
}

struct GateTask {
  const ForwardContext& context;
  float limit;
  const tensor::FloatMatrix& input;
  std::span<const ExpertRows* const> experts;
  tensor::FloatMatrix& gated;
};

// What one thread needs besides: values of one expert at a time.
struct Scratch {
  std::vector<float> input;        // [tokens, hidden]
  kernels::Int8Matrix int8_input;  // the same
  std::vector<float> up;           // [tokens, expert_size]
};

bool follow_one_another(std::span<const std::size_t> tokens) {
  return tokens.back() - tokens.front() + 1 == tokens.size();
}

// The expert's rows of the input: where they lie, if they follow one another, else a copy.
ActivationRows rows_of_expert(const GateTask& task, const ExpertRows& expert, Scratch& scratch) {
  const std::size_t columns = task.input.columns();
  ActivationRows rows = {.data = task.input.row(expert.tokens.front()).data(),
                         .stride = columns,
                         .tokens = expert.tokens.size(),
                         .values = task.context.numerics.activation_values()};
  if (follow_one_another(expert.tokens)) return rows;
  scratch.input.resize(std::max(scratch.input.size(), rows.tokens * columns));
  float* target = scratch.input.data();
  for (const std::size_t token : expert.tokens) {
    target = std::ranges::copy(task.input.row(token), target).out;
  }
  rows.data = scratch.input.data();
  return rows;
}

kernels::Int8Rows int8_rows_of_expert(const ExpertRows& expert, Scratch& scratch) {
  const kernels::Int8Rows all = expert.int8_input->rows();
  const std::size_t count = expert.tokens.size();
  if (follow_one_another(expert.tokens)) return all.part(expert.tokens.front(), count);
  scratch.int8_input.resize(count, all.columns);
  for (std::size_t row = 0; row < count; ++row) {
    scratch.int8_input.copy_row(all, expert.tokens[row], row);
  }
  return scratch.int8_input.rows();
}

// Row groups of gate and up, into the task's gated values and the scratch.
void multiply_gate_and_up(const GateTask& task, const ExpertRows& expert, Share groups,
                          Scratch& scratch) {
  const ExpertWeights& weights = *expert.weights;
  const std::size_t width = weights.gate.rows;
  float* gate = task.gated.row(expert.first_row).data();
  scratch.up.resize(std::max(scratch.up.size(), expert.tokens.size() * width));
  float* up = scratch.up.data();
  const kernels::KernelTable& table = kernels::active_kernels();
  if (expert.int8_input != nullptr) {
    const kernels::Int8Rows x = int8_rows_of_expert(expert, scratch);
    table.int8.matmul_groups(weights.gate, x, gate, width, groups.begin, groups.end);
    table.int8.matmul_groups(weights.up, x, up, width, groups.begin, groups.end);
    return;
  }
  const ActivationRows x = rows_of_expert(task, expert, scratch);
  table.matmul_groups(weights.gate, x, gate, width, groups.begin, groups.end);
  table.matmul_groups(weights.up, x, up, width, groups.begin, groups.end);
}

// Outputs [first, last) of an expert, in units of kUnitRows.
void gate_units(const GateTask& task, const ExpertRows& expert, Share units, Scratch& scratch) {
  const WeightMatrix& weights = expert.weights->gate;
  const std::size_t width = weights.rows;
  const Share groups = {.begin = units.begin * kUnitGroups,
                        .end = std::min(units.end * kUnitGroups, weights.row_groups())};
  multiply_gate_and_up(task, expert, groups, scratch);
  const std::size_t first = groups.begin * kGroupRows;
  const std::size_t count = std::min(groups.end * kGroupRows, width) - first;
  const Rounding rounding = task.context.numerics.rounding();
  const bool quantizes =
      task.context.numerics.quantizes_activations() && expert.int8_input == nullptr;
  for (std::size_t row = 0; row < expert.tokens.size(); ++row) {
    const std::span<float> gate = task.gated.row(expert.first_row + row).subspan(first, count);
    const std::span<float> up = std::span(scratch.up).subspan(row * width + first, count);
    round_row(gate, rounding);
    round_row(up, rounding);
    kernels::swiglu(gate, up, task.limit, expert.router_weights[row], rounding, gate);
    if (quantizes) kernels::fake_quantize_fp8(gate);
  }
}

// target += values
void add_row(std::span<const float> values, std::span<float> target) {
  constexpr std::size_t kStep = 16;
  std::size_t i = 0;
  // Blocks of a size that the compiler turns into vectors.
  for (; i + kStep <= values.size(); i += kStep) {
    std::array<float, kStep> sum;
    std::array<float, kStep> added;
    std::copy_n(target.data() + i, kStep, sum.begin());
    std::copy_n(values.data() + i, kStep, added.begin());
    for (std::size_t k = 0; k < kStep; ++k) sum[k] += added[k];
    std::copy_n(sum.begin(), kStep, target.data() + i);
  }
  for (; i < values.size(); ++i) target[i] += values[i];
}

// The experts whose outputs are still to be computed.
std::vector<const ExpertRows*> without_output(std::span<const ExpertRows> experts) {
  std::vector<const ExpertRows*> found;
  for (const ExpertRows& expert : experts) {
    if (expert.projected == nullptr) found.push_back(&expert);
  }
  return found;
}

// The gated rows of all experts that take int8; the other rows are left out.
kernels::Int8Matrix quantize_gated(const ForwardContext& context,
                                   std::span<const ExpertRows* const> experts,
                                   const tensor::FloatMatrix& gated) {
  std::vector<std::size_t> rows;
  for (const ExpertRows* expert : experts) {
    for (std::size_t i = 0; i < expert->tokens.size() && expert->int8_input != nullptr; ++i) {
      rows.push_back(expert->first_row + i);
    }
  }
  kernels::Int8Matrix codes;
  if (rows.empty()) return codes;
  codes.resize(gated.rows(), gated.columns());
  for_each_row(context, rows.size(), gated.columns() * kWorkPerNormedValue, [&](std::size_t i) {
    kernels::quantize_int8(gated.row(rows[i]), codes.row(rows[i]));
  });
  return codes;
}

struct DownTask {
  const ForwardContext& context;
  const tensor::FloatMatrix& gated;
  const kernels::Int8Matrix& int8_gated;
};

// Columns of the outputs of one expert, row by row.
struct Outputs {
  float* rows;  // [tokens of the expert, width]
  std::size_t width;
  Share groups;  // of 16 columns each

  std::size_t first() const { return groups.begin * kGroupRows; }
  std::span<float> row(std::size_t token) const {
    const std::size_t end = std::min(groups.end * kGroupRows, width);
    return {rows + token * width + first(), end - first()};
  }
};

// Row groups of a down projection, rounded.
void multiply_down(const DownTask& task, const ExpertRows& expert, const Outputs& outputs) {
  const WeightMatrix& down = expert.weights->down;
  const std::size_t tokens = expert.tokens.size();
  const auto [rows, width, groups] = outputs;
  const kernels::KernelTable& table = kernels::active_kernels();
  if (expert.int8_input != nullptr) {
    const kernels::Int8Rows x = task.int8_gated.rows().part(expert.first_row, tokens);
    table.int8.matmul_groups(down, x, rows, width, groups.begin, groups.end);
  } else {
    const ActivationRows x = {.data = task.gated.row(expert.first_row).data(),
                              .stride = task.gated.columns(),
                              .tokens = tokens,
                              .values = task.context.numerics.activation_values()};
    table.matmul_groups(down, x, rows, width, groups.begin, groups.end);
  }
  const Rounding rounding = task.context.numerics.rounding();
  for (std::size_t row = 0; row < tokens; ++row) round_row(outputs.row(row), rounding);
}

struct AddTask {
  DownTask down;
  std::span<const ExpertRows> experts;
  Rounding last;
  float* scratch;  // [most tokens, hidden], every thread in its own columns
  tensor::FloatMatrix& sum;
};

// Columns of the sum that row groups `groups` of all down projections make.
void add_groups(const AddTask& task, Share groups) {
  const std::size_t width = task.sum.columns();
  Outputs outputs = {.rows = task.scratch, .width = width, .groups = groups};
  const std::size_t count = outputs.row(0).size();
  for (const ExpertRows& expert : task.experts) {
    if (expert.projected == nullptr) multiply_down(task.down, expert, outputs);
    for (std::size_t row = 0; row < expert.tokens.size(); ++row) {
      const std::span<const float> values =
          expert.projected != nullptr
              ? expert.projected->row(expert.first_row + row).subspan(outputs.first(), count)
              : outputs.row(row);
      add_row(values, task.sum.row(expert.tokens[row]).subspan(outputs.first(), count));
    }
  }
  if (task.last == Rounding::kNone) return;
  for (std::size_t token = 0; token < task.sum.rows(); ++token) {
    round_row(task.sum.row(token).subspan(outputs.first(), count), task.last);
  }
}

}  // namespace

std::size_t number_rows(std::span<ExpertRows> experts) {
  std::size_t rows = 0;
  for (ExpertRows& expert : experts) {
    expert.first_row = rows;
    rows += expert.tokens.size();
  }
  return rows;
}

void gate_experts(ForwardContext& context, float swiglu_limit, const tensor::FloatMatrix& input,
                  std::span<const ExpertRows* const> experts, tensor::FloatMatrix& gated) {
  EvenShares shares;
  for (const ExpertRows* expert : experts) {
    const WeightMatrix& gate = expert->weights->gate;
    LOCKET_CHECK(gate.columns == input.columns() && gate.rows == gated.columns());
    shares.add(unit_count(gate), 2 * product_cost(gate, expert->tokens.size()));
    context.work.matmul += 2 * expert->tokens.size() * gate.rows * gate.columns;
  }
  const GateTask task = {.context = context,
                         .limit = swiglu_limit,
                         .input = input,
                         .experts = experts,
                         .gated = gated};
  shares.run(context.workers, [&](Share share) {
    Scratch scratch;
    shares.for_each(share, [&](std::size_t index, Share units) {
      gate_units(task, *experts[index], units, scratch);
    });
  });
}

void project_experts(ForwardContext& context, std::span<ExpertRows* const> experts,
                     const tensor::FloatMatrix& gated, tensor::FloatMatrix& outputs) {
  EvenShares shares;
  for (const ExpertRows* expert : experts) {
    const WeightMatrix& down = expert->weights->down;
    LOCKET_CHECK(down.columns == gated.columns() && down.rows == outputs.columns());
    shares.add(down.row_groups(), product_cost(down, expert->tokens.size()));
    context.work.matmul += expert->tokens.size() * down.rows * down.columns;
  }
  const kernels::Int8Matrix int8_gated = quantize_gated(context, experts, gated);
  const DownTask task = {.context = context, .gated = gated, .int8_gated = int8_gated};
  shares.run(context.workers, [&](Share share) {
    shares.for_each(share, [&](std::size_t index, Share groups) {
      const ExpertRows& expert = *experts[index];
      multiply_down(task, expert,
                    {.rows = outputs.row(expert.first_row).data(),
                     .width = outputs.columns(),
                     .groups = groups});
    });
  });
  for (ExpertRows* expert : experts) expert->projected = &outputs;
}

void add_expert_outputs(ForwardContext& context, std::span<const ExpertRows> experts,
                        const tensor::FloatMatrix& gated, Rounding last, tensor::FloatMatrix& sum) {
  const std::vector<const ExpertRows*> left = without_output(experts);
  std::uint64_t cost = most_tokens(experts) * sum.columns();
  for (const ExpertRows* expert : left) {
    const WeightMatrix& down = expert->weights->down;
    LOCKET_CHECK(down.columns == gated.columns() && down.rows == sum.columns());
    cost += product_cost(down, expert->tokens.size());
    context.work.matmul += expert->tokens.size() * down.rows * down.columns;
  }
  const auto scratch =
      std::make_unique_for_overwrite<float[]>(most_tokens(experts) * sum.columns());
  const kernels::Int8Matrix int8_gated = quantize_gated(context, left, gated);
  const AddTask task = {.down = {.context = context, .gated = gated, .int8_gated = int8_gated},
                        .experts = experts,
                        .last = last,
                        .scratch = scratch.get(),
                        .sum = sum};
  const std::size_t groups = (sum.columns() + kGroupRows - 1) / kGroupRows;
  context.workers.parallel_for(groups, WorkerPool::grain_for(cost / groups),
                               [&](std::size_t begin, std::size_t end) {
                                 add_groups(task, {begin, end});
                               });
}

}  // namespace locket::model
