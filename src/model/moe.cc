#include "model/moe.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "model/expert_step.h"
#include "model/linear.h"
#include "model/row_work.h"

namespace locket::model {
namespace {

// The routed experts that somebody chose, ascending.
struct ChosenExperts {
  std::vector<std::int32_t> ids;
  std::vector<ExpertRows> rows;
};

ChosenExperts group_by_expert(const Routing& routing, std::size_t expert_count) {
  std::vector<std::size_t> counts(expert_count);
  for (const std::int32_t id : routing.experts) ++counts[static_cast<std::size_t>(id)];
  ChosenExperts chosen;
  const auto found = static_cast<std::size_t>(
      std::ranges::count_if(counts, [](std::size_t count) { return count > 0; }));
  chosen.rows.reserve(found + 1);  // and the shared one
  std::vector<std::size_t> numbers(expert_count);
  for (std::size_t id = 0; id < expert_count; ++id) {
    if (counts[id] == 0) continue;
    numbers[id] = chosen.ids.size();
    chosen.ids.push_back(static_cast<std::int32_t>(id));
    ExpertRows& rows = chosen.rows.emplace_back();
    rows.tokens.reserve(counts[id]);
    rows.router_weights.reserve(counts[id]);
  }
  for (std::size_t i = 0; i < routing.experts.size(); ++i) {
    ExpertRows& rows = chosen.rows[numbers[static_cast<std::size_t>(routing.experts[i])]];
    rows.tokens.push_back(i / routing.experts_per_token);
    rows.router_weights.push_back(routing.weights[i]);
  }
  return chosen;
}

ExpertRows all_rows(const ExpertWeights& weights, std::size_t tokens) {
  ExpertRows rows = {.weights = &weights,
                     .tokens = std::vector<std::size_t>(tokens),
                     .router_weights = std::vector<float>(tokens, 1.0f)};
  std::iota(rows.tokens.begin(), rows.tokens.end(), std::size_t{0});
  return rows;
}

struct MoeStep {
  ForwardContext& context;
  float swiglu_limit;
  const tensor::FloatMatrix& input;  // quantized
  std::size_t expert_size;
  tensor::FloatMatrix& sum;
};

// Takes those that are there out of `missing`.
std::vector<std::size_t> take_ready(const ExpertSource::Lease& lease,
                                    std::vector<std::size_t>& missing) {
  std::vector<std::size_t> taken;
  std::erase_if(missing, [&](std::size_t index) {
    if (!lease.is_ready(index)) return false;
    taken.push_back(index);
    return true;
  });
  return taken;
}

// Mode `fast` has products of int8 with FP4 weights and no others.
Status check_formats(const ExpertRows& expert) {
  if (expert.int8_input == nullptr) return {};
  for (const kernels::WeightMatrix* w :
       {&expert.weights->gate, &expert.weights->up, &expert.weights->down}) {
    if (w->format == kernels::WeightFormat::kFp4) continue;
    return fail(ErrorCode::kUnsupported,
                "mode fast needs routed experts in FP4; this checkpoint has others. Use mode "
                "reference or wide");
  }
  return {};
}

// Every row of u as int8, if the mode wants it for routed experts.
kernels::Int8Matrix int8_rows(const ForwardContext& context, const tensor::FloatMatrix& u) {
  kernels::Int8Matrix codes;
  if (!context.numerics.has_int8_experts()) return codes;
  codes.resize(u.rows(), u.columns());
  for_each_row(context, u.rows(), u.columns() * kWorkPerNormedValue,
               [&](std::size_t row) { kernels::quantize_int8(u.row(row), codes.row(row)); });
  return codes;
}

// The experts of one lease and what needs none, as they are computed.
struct Batch {
  std::span<ExpertRows> experts;
  std::size_t leased;           // the first ones of `experts`
  tensor::FloatMatrix gated;    // [rows of all, expert_size]
  tensor::FloatMatrix outputs;  // [rows of all, hidden] of those that are projected
};

// Rows up to which the memory for outputs of their own is nothing.
constexpr std::size_t kProjectedRows = 64;

void project(const MoeStep& step, std::span<ExpertRows* const> experts, Batch& batch) {
  if (batch.outputs.empty()) batch.outputs = {batch.gated.rows(), step.sum.columns()};
  project_experts(step.context, experts, batch.gated, batch.outputs);
}

// Gates the experts as they arrive, beginning with what is there; while all that is there has been
// gated, their down products are done.
Status compute_as_they_come(const MoeStep& step, ExpertSource::Lease& lease, Batch& batch) {
  std::vector<std::size_t> missing(batch.leased);
  std::iota(missing.begin(), missing.end(), std::size_t{0});
  std::vector<ExpertRows*> ready;
  std::vector<ExpertRows*> gated;
  for (ExpertRows& expert : batch.experts.subspan(batch.leased)) ready.push_back(&expert);
  while (!ready.empty() || !missing.empty()) {
    std::vector<std::size_t> taken = take_ready(lease, missing);
    if (taken.empty() && ready.empty()) {
      if (!gated.empty() && batch.gated.rows() <= kProjectedRows) {
        project(step, std::exchange(gated, {}), batch);
        continue;
      }
      taken.push_back(lease.wait_any(missing));
      std::erase(missing, taken.front());
    }
    for (const std::size_t index : taken) {
      ExpertRows& expert = batch.experts[index];
      LOCKET_TRY(expert.weights, lease.wait(index));
      LOCKET_TRY_STATUS(check_formats(expert));
      ready.push_back(&expert);
    }
    gate_experts(step.context, step.swiglu_limit, step.input, ready, batch.gated);
    gated.insert(gated.end(), ready.begin(), ready.end());
    ready.clear();
  }
  return {};
}

// Adds the outputs of `experts`, the first `leased` of which are those of the lease.
Status add_experts(const MoeStep& step, ExpertSource::Lease& lease, std::size_t leased,
                   std::span<ExpertRows> experts) {
  const bool is_last = experts.size() > leased;
  const std::size_t rows = number_rows(experts);
  Batch batch = {
      .experts = experts, .leased = leased, .gated = {rows, step.expert_size}, .outputs = {}};
  LOCKET_TRY_STATUS(compute_as_they_come(step, lease, batch));
  add_expert_outputs(step.context, experts, batch.gated,
                     is_last ? step.context.numerics.rounding() : kernels::Rounding::kNone,
                     step.sum);
  return {};
}

// A shared expert whose size is not that of the routed ones.
void add_alone(const MoeStep& step, const ExpertWeights& shared) {
  ExpertRows rows = all_rows(shared, step.input.rows());
  const ExpertRows* const entries[] = {&rows};
  tensor::FloatMatrix gated(rows.tokens.size(), shared.gate.rows);
  gate_experts(step.context, step.swiglu_limit, step.input, entries, gated);
  add_expert_outputs(step.context, {&rows, 1}, gated, step.context.numerics.rounding(), step.sum);
}

}  // namespace

void observe_routing(const ForwardContext& context, std::int64_t layer, const Routing& routing,
                     std::int64_t first_position) {
  if (context.observer == nullptr) return;
  const ForwardObserver::Place place = {.name = "experts",
                                        .layer = layer,
                                        .first_position = first_position,
                                        .width = routing.experts_per_token};
  context.observer->on_integers(place, routing.experts);
  ForwardObserver::Place weights = place;
  weights.name = "expert_weights";
  context.observer->on_floats(weights, routing.weights);
}

Result<tensor::FloatMatrix> moe_forward(ForwardContext& context, const MoeConfig& config,
                                        const MoeWeights& weights, ExpertSource& experts,
                                        const tensor::FloatMatrix& u, std::int64_t first_position) {
  const Routing routing = route(context, config.router, weights.router, u);
  observe_routing(context, config.layer, routing, first_position);
  return run_experts(context, config, weights.shared, experts, u, routing);
}

Result<tensor::FloatMatrix> run_experts(ForwardContext& context, const MoeConfig& config,
                                        const ExpertWeights& shared, ExpertSource& experts,
                                        const tensor::FloatMatrix& u, const Routing& routing) {
  ChosenExperts chosen = group_by_expert(routing, experts.expert_count());
  const std::size_t routed = chosen.ids.size();
  const std::size_t at_once = experts.experts_at_once();
  const auto fetch = [&](std::size_t first) {
    return experts.fetch(config.layer,
                         std::span(chosen.ids).subspan(first, std::min(at_once, routed - first)));
  };
  std::unique_ptr<ExpertSource::Lease> lease = fetch(0);
  const tensor::FloatMatrix input = quantize_activations(context, u);
  const kernels::Int8Matrix codes = int8_rows(context, u);
  if (context.numerics.has_int8_experts()) {
    for (ExpertRows& expert : chosen.rows) expert.int8_input = &codes;
  }
  tensor::FloatMatrix sum(u.rows(), u.columns());
  const MoeStep step = {
      .context = context,
      .swiglu_limit = config.swiglu_limit,
      .input = input,
      .expert_size = config.expert_size > 0 ? config.expert_size : shared.gate.rows,
      .sum = sum};
  const bool is_alone = step.expert_size != shared.gate.rows;
  if (!is_alone) chosen.rows.push_back(all_rows(shared, u.rows()));
  for (std::size_t first = 0; first < routed; first += at_once) {
    const std::size_t leased = std::min(at_once, routed - first);
    const bool is_last = first + leased == routed;
    std::unique_ptr<ExpertSource::Lease> next = is_last ? nullptr : fetch(first + leased);
    const std::size_t others = is_last && !is_alone ? 1 : 0;
    LOCKET_TRY_STATUS(
        add_experts(step, *lease, leased, std::span(chosen.rows).subspan(first, leased + others)));
    lease = std::move(next);
  }
  if (is_alone) add_alone(step, shared);
  return sum;
}

}  // namespace locket::model
