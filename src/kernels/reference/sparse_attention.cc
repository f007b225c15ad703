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
  std::vector<float> accumulator;  // [out_dim]
};

// Rows as floats [slots, row_values]; slots that are not used are zero.
std::vector<float> decoded_rows(const AttentionInput& input) {
  const std::size_t width = input.row_values();
  std::vector<float> values(input.rows.size() * width, 0.0f);
  for (std::size_t slot = 0; slot < input.rows.size(); ++slot) {
    const AttentionRow& row = input.rows[slot];
    if (row.empty()) continue;
    decode_row(row.format, {row.bytes, row_bytes(row.format, width)},
               std::span(values).subspan(slot * width, width));
  }
  return values;
}

// What one head's tiles are made from.
struct HeadInput {
  const AttentionInput& input;
  std::span<const float> query;  // [head_dim]
  std::span<const float> rows;   // [slots, row_values]

  const float* row(std::size_t slot) const { return rows.data() + slot * input.row_values(); }
};

void add_tile(const HeadInput& of, std::size_t first, Head& head) {
  const AttentionInput& input = of.input;
  const std::size_t count = std::min(kAttentionTile, input.rows.size() - first);
  std::array<float, kAttentionTile> scores;
  float maximum = head.maximum;
  for (std::size_t slot = 0; slot < count; ++slot) {
    if (input.rows[first + slot].empty()) continue;
    const float* row = of.row(first + slot);
    scores[slot] = input.scale * ordered_dot(
                                     input.head_dim, [&](std::size_t k) { return of.query[k]; },
                                     [&](std::size_t k) { return row[k]; });
    maximum = std::max(maximum, scores[slot]);
  }
  const float shrink = exp_value(head.maximum - maximum);
  std::array<float, kAttentionTile> weights = {};
  for (std::size_t slot = 0; slot < count; ++slot) {
    if (!input.rows[first + slot].empty()) weights[slot] = exp_value(scores[slot] - maximum);
  }
  const float sum = ordered_sum(kAttentionTile, [&](std::size_t slot) { return weights[slot]; });
  head.maximum = maximum;
  head.denominator = head.denominator * shrink + sum;
  for (float& weight : weights) weight = round_value(weight, input.rounding);
  for (std::size_t dim = 0; dim < input.out_dim(); ++dim) {
    const float part = ordered_dot(
        count, [&](std::size_t slot) { return weights[slot]; },
        [&](std::size_t slot) { return of.row(first + slot)[input.value_first + dim]; });
    head.accumulator[dim] = head.accumulator[dim] * shrink + part;
  }
}

}  // namespace

void sparse_attention(const AttentionInput& input, std::span<float> out) {
  const std::vector<float> rows = decoded_rows(input);
  for (std::size_t h = 0; h < input.heads; ++h) {
    Head head{.accumulator = std::vector<float>(input.out_dim(), 0.0f)};
    const HeadInput of = {.input = input,
                          .query = input.query.subspan(h * input.head_dim, input.head_dim),
                          .rows = rows};
    for (std::size_t first = 0; first < input.rows.size(); first += kAttentionTile) {
      add_tile(of, first, head);
    }
    float denominator = head.denominator;
    if (!input.sink.empty()) {
      denominator += exp_value(input.sink[h] - head.maximum);
    } else if (denominator == 0.0f) {
      denominator = 1.0f;
    }
    for (std::size_t dim = 0; dim < input.out_dim(); ++dim) {
      out[h * input.out_dim() + dim] =
          round_value(head.accumulator[dim] / denominator, input.rounding);
    }
  }
}

}  // namespace locket::kernels::reference
