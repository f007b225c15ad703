#include "kernels/streams.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "kernels/elementary.h"
#include "kernels/reference/reference.h"
#include "kernels/sum_order.h"

namespace locket::kernels::reference {
namespace {

double dot_in_double(std::span<const float> a, std::span<const float> b) {
  std::array<double, kLanes> lanes = {};
  for (std::size_t i = 0; i < a.size(); ++i) {
    lanes[i % kLanes] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// rows of a [size, size] matrix become softmax + eps.
void softmax_rows(std::span<float> matrix, std::size_t size, float eps) {
  for (std::size_t row = 0; row < size; ++row) {
    const auto values = matrix.subspan(row * size, size);
    const float maximum = *std::max_element(values.begin(), values.end());
    float sum = 0.0f;
    for (float& value : values) {
      value = exp_value(value - maximum);
      sum += value;
    }
    const float reciprocal = 1.0f / sum;
    for (float& value : values) value = value * reciprocal + eps;
  }
}

void divide_rows(std::span<float> matrix, std::size_t size, float eps) {
  for (std::size_t row = 0; row < size; ++row) {
    float sum = 0.0f;
    for (std::size_t column = 0; column < size; ++column) sum += matrix[row * size + column];
    for (std::size_t column = 0; column < size; ++column) matrix[row * size + column] /= sum + eps;
  }
}

void divide_columns(std::span<float> matrix, std::size_t size, float eps) {
  for (std::size_t column = 0; column < size; ++column) {
    float sum = 0.0f;
    for (std::size_t row = 0; row < size; ++row) sum += matrix[row * size + column];
    for (std::size_t row = 0; row < size; ++row) matrix[row * size + column] /= sum + eps;
  }
}

}  // namespace

void dots_in_double(std::span<const float> rows, std::span<const float> x, std::span<double> sums) {
  for (std::size_t row = 0; row < sums.size(); ++row) {
    sums[row] = dot_in_double(rows.subspan(row * x.size(), x.size()), x);
  }
}

void collapse_streams(std::span<const float> streams, std::span<const float> weights,
                      Rounding rounding, std::span<float> out) {
  const std::size_t hidden = out.size();
  for (std::size_t i = 0; i < hidden; ++i) {
    float sum = weights[0] * streams[i];
    for (std::size_t s = 1; s < weights.size(); ++s) sum += weights[s] * streams[s * hidden + i];
    out[i] = round_value(sum, rounding);
  }
}

void expand_streams(const StreamExpansion& expansion, std::span<float> streams) {
  const std::size_t count = expansion.post.size();
  const std::size_t hidden = expansion.y.size();
  const std::vector<float> old(streams.begin(), streams.end());
  for (std::size_t k = 0; k < count; ++k) {
    for (std::size_t i = 0; i < hidden; ++i) {
      float sum = expansion.comb[k] * old[i];
      for (std::size_t j = 1; j < count; ++j) {
        sum += expansion.comb[j * count + k] * old[j * hidden + i];
      }
      streams[k * hidden + i] =
          round_value(expansion.post[k] * expansion.y[i] + sum, expansion.rounding);
    }
  }
}

void mix_coefficients(const StreamMixing& mixing, std::span<const float> mixes,
                      const StreamCoefficients& out) {
  const std::size_t size = mixing.streams;
  const auto mixed = [&](std::size_t i, std::size_t part) {
    return mixes[i] * mixing.scale[part] + mixing.base[i];
  };
  for (std::size_t i = 0; i < size; ++i) {
    out.pre[i] = sigmoid(mixed(i, 0)) + mixing.eps;
    out.post[i] = 2.0f * sigmoid(mixed(size + i, 1));
  }
  for (std::size_t i = 0; i < size * size; ++i) out.comb[i] = mixed(2 * size + i, 2);
  softmax_rows(out.comb, size, mixing.eps);
  divide_columns(out.comb, size, mixing.eps);
  for (std::size_t iteration = 1; iteration < mixing.iterations; ++iteration) {
    divide_rows(out.comb, size, mixing.eps);
    divide_columns(out.comb, size, mixing.eps);
  }
}

void round_to_bf16(std::span<float> values) {
  for (float& value : values) value = numerics::round_to_bf16(value);
}

}  // namespace locket::kernels::reference
