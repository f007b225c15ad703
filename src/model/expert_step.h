// The products of the experts of one step, each applied to the rows of the tokens that chose it, in
// two phases of one barrier each:
//
//   gate_experts        input -> gate and up, clamp, SiLU, router weight, quantized
//   add_expert_outputs  gated -> down, added to the sum of each token
//
// While experts are on their way, project_experts() does the down products of those that are there;
// their outputs then are only added.
//
// Mode `fast` gives routed experts their rows as int8 (kernels/int8_matmul.h); it has a third
// phase, in between, that quantizes the gated rows.
//
// Within a phase the threads share out rows of weights, never tokens or K, so that a weight is read
// once and the bits do not depend on the threads. The order of the sums: docs/numerics.md.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/int8_matmul.h"
#include "kernels/rounding.h"
#include "model/expert_source.h"
#include "model/forward_context.h"
#include "tensor/float_matrix.h"

namespace locket::model {

// One expert and the tokens it sees.
struct ExpertRows {
  const ExpertWeights* weights = nullptr;
  std::vector<std::size_t> tokens;    // rows of the step's input, ascending
  std::vector<float> router_weights;  // one per token
  std::size_t first_row = 0;          // its rows in the matrix of gated values
  // The step's input as int8 [tokens, hidden]: what the products take, if it is there.
  // REQUIRES: then all weights are kFp4.
  const kernels::Int8Matrix* int8_input = nullptr;
  // Its outputs [tokens, hidden] from first_row on, if they have been computed before the sum.
  const tensor::FloatMatrix* projected = nullptr;
};

// Sets first_row of every entry and returns the rows of all.
std::size_t number_rows(std::span<ExpertRows> experts);

// gated [rows of all, expert_size]: the rows of `experts` are written, as the down projection takes
// them. `input` [tokens, hidden] is quantized as the products want it. The experts may be any of
// those that were numbered.
void gate_experts(ForwardContext& context, float swiglu_limit, const tensor::FloatMatrix& input,
                  std::span<const ExpertRows* const> experts, tensor::FloatMatrix& gated);

// outputs [rows of all, hidden]: the rows of `experts` are written, each rounded as activations
// are. REQUIRES: they are gated.
void project_experts(ForwardContext& context, std::span<ExpertRows* const> experts,
                     const tensor::FloatMatrix& gated, tensor::FloatMatrix& outputs);

// sum [tokens, hidden] += output of every expert, in the order of `experts`, each rounded as
// activations are; then all of `sum` is rounded as `last` says.
void add_expert_outputs(ForwardContext& context, std::span<const ExpertRows> experts,
                        const tensor::FloatMatrix& gated, kernels::Rounding last,
                        tensor::FloatMatrix& sum);

}  // namespace locket::model
