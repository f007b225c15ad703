// The router of a mixture of experts: a score per expert from gate . u; the k experts with the
// largest score + bias are chosen (the lower id on equal sums), where there are groups out of the
// best groups only (the lower number on equal scores); their weights are the plain scores,
// normalised or not, and scaled. Official model.py of V2 ("group_limited_greedy"), V3 ("noaux_tc")
// and V4.1 ("noaux_tc" with "sqrtsoftplus"), Gate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/weight_matrix.h"
#include "model/forward_context.h"
#include "tensor/float_matrix.h"

namespace locket::model {

// How the score of an expert comes from its logit.
enum class RouterScore { kSqrtSoftplus, kSigmoid, kSoftmax, kCount };

// The score of a group: its best biased score, or the sum of its two best.
enum class GroupScore { kBest, kSumOfTwo, kCount };

enum class RouterWeighting { kNormalised, kPlain, kCount };

struct RouterConfig {
  std::size_t experts_per_token = 0;
  float scaling_factor = 1;
  RouterScore score = RouterScore::kSqrtSoftplus;
  RouterWeighting weighting = RouterWeighting::kNormalised;
  // Groups of equal size of consecutive experts; 1: no groups. REQUIRES: those kept hold at least
  // experts_per_token experts; kSumOfTwo: a group holds at least two.
  std::size_t groups = 1;
  std::size_t kept_groups = 1;
  GroupScore group_score = GroupScore::kBest;
};

struct RouterWeights {
  kernels::WeightMatrix gate;  // [experts, hidden] BF16
  std::vector<float> bias;     // [experts], for the choice only; empty: none
};

struct Routing {
  std::size_t experts_per_token = 0;
  std::vector<std::int32_t> experts;  // [tokens, k], best first
  std::vector<float> weights;         // [tokens, k]
};

Routing route(ForwardContext& context, const RouterConfig& config, const RouterWeights& weights,
              const tensor::FloatMatrix& u);

}  // namespace locket::model
