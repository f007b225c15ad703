#include "kernels/sparse_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "kernels/elementary.h"
#include "kernels/reference/reference.h"
#include "kernels/sum_order.h"

namespace locket::kernels::reference {
namespace {

constexpr float kFirstMaximum = -1e30f;  // the official seed of the running maximum

// Running state of one head.
struct Head {
  float maximum = kFirstMaximum;
  float denominator = 0.0f;
  std::vector<float> accumulator;  // [head_dim]
};

void add_tile(const AttentionInput& input, std::span<const float> query, std::size_t first,
              Head& head) {
  const std::size_t count = std::min(kAttentionTile, input.used.size() - first);
  std::array<float, kAttentionTile> scores;
  float maximum = head.maximum;
  for (std::size_t slot = 0; slot < count; ++slot) {
    if (input.used[first + slot] == 0) continue;
    const float* row = input.rows.data() + (first + slot) * input.head_dim;
    scores[slot] = input.scale * ordered_dot(
                                     input.head_dim, [&](std::size_t k) { return query[k]; },
                                     [&](std::size_t k) { return row[k]; });
    maximum = std::max(maximum, scores[slot]);
  }
  const float shrink = exp_value(head.maximum - maximum);
  std::array<float, kAttentionTile> weights = {};
  for (std::size_t slot = 0; slot < count; ++slot) {
    if (input.used[first + slot] != 0) weights[slot] = exp_value(scores[slot] - maximum);
  }
  const float sum = ordered_sum(kAttentionTile, [&](std::size_t slot) { return weights[slot]; });
  head.maximum = maximum;
  head.denominator = head.denominator * shrink + sum;
  for (float& weight : weights) weight = round_value(weight, input.rounding);
  for (std::size_t dim = 0; dim < input.head_dim; ++dim) {
    const float part = ordered_dot(
        count, [&](std::size_t slot) { return weights[slot]; },
        [&](std::size_t slot) { return input.rows[(first + slot) * input.head_dim + dim]; });
    head.accumulator[dim] = head.accumulator[dim] * shrink + part;
  }
}

}  // namespace

void sparse_attention(const AttentionInput& input, std::span<float> out) {
  for (std::size_t h = 0; h < input.heads; ++h) {
    Head head{.accumulator = std::vector<float>(input.head_dim, 0.0f)};
    const auto query = input.query.subspan(h * input.head_dim, input.head_dim);
    for (std::size_t first = 0; first < input.used.size(); first += kAttentionTile) {
      add_tile(input, query, first, head);
    }
    const float denominator = head.denominator + exp_value(input.sink[h] - head.maximum);
    for (std::size_t dim = 0; dim < input.head_dim; ++dim) {
      out[h * input.head_dim + dim] =
          round_value(head.accumulator[dim] / denominator, input.rounding);
    }
  }
}

}  // namespace locket::kernels::reference
