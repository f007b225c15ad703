#include "kernels/cpu/streams.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "kernels/reference/reference.h"
#include "kernels/sum_order.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/streams.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "kernels/cpu/float_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locket::kernels::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

constexpr std::size_t kStep = hn::MaxLanes(F32());

using F64 = hn::ScalableTag<double>;
using VecD = hn::Vec<F64>;
using Half = hn::Rebind<float, F64>;
constexpr std::size_t kWideStep = hn::MaxLanes(F64());
constexpr std::size_t kVectors = kLanes / kWideStep;  // of double, for the 16 lanes

// The most streams that a position's values are held of in registers.
constexpr std::size_t kMostStreams = 8;

// The tree of halves over the 16 lanes.
HWY_INLINE double add_wide_lanes(const VecD* lanes) {
  const hn::Half<F64> half;
  const auto halves = [&](VecD sum) {
    return hn::Add(hn::LowerHalf(half, sum), hn::UpperHalf(half, sum));
  };
  if constexpr (kVectors == 2) {
    const hn::Half<hn::Half<F64>> pair;
    const auto four = halves(hn::Add(lanes[0], lanes[1]));
    const auto two = hn::Add(hn::LowerHalf(pair, four), hn::UpperHalf(pair, four));
    return hn::GetLane(two) + hn::ExtractLane(two, 1);
  } else {
    const VecD four = hn::Add(hn::Add(lanes[0], lanes[2]), hn::Add(lanes[1], lanes[3]));
    const auto two = halves(four);
    return hn::GetLane(two) + hn::ExtractLane(two, 1);
  }
}

// Up to this width the rows that follow are asked for: short ones end before the machine has taken
// up the stream by itself.
constexpr std::size_t kShortRow = 4096;

// The products behind the last whole step, into the lanes.
void add_rest(const float* row, std::span<const float> x, std::size_t first, VecD* lanes) {
  const F64 d;
  alignas(64) std::array<double, kLanes> stored;
  for (std::size_t v = 0; v < kVectors; ++v) hn::Store(lanes[v], d, stored.data() + v * kWideStep);
  for (std::size_t i = first; i < x.size(); ++i) {
    stored[i - first] += static_cast<double>(row[i]) * static_cast<double>(x[i]);
  }
  for (std::size_t v = 0; v < kVectors; ++v) lanes[v] = hn::Load(d, stored.data() + v * kWideStep);
}

// kRows dot products at once: x is widened once for all. A product of two floats is exact in
// double, so a fused step rounds no other than a product and a sum.
template <std::size_t kRows>
void dot_rows(const float* rows, std::span<const float> x, double* sums) {
  const F64 d;
  const Half h;
  const std::size_t width = x.size();
  VecD lanes[kRows][kVectors];
  HWY_UNROLL(4)
  for (std::size_t row = 0; row < kRows; ++row) {
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) lanes[row][v] = hn::Zero(d);
  }
  std::size_t i = 0;
  const std::size_t ahead = width <= kShortRow ? kRows * width : 0;
  for (; i + kLanes <= width; i += kLanes) {
    HWY_UNROLL(4)
    for (std::size_t row = 0; row < kRows && ahead > 0; ++row) {
      __builtin_prefetch(rows + ahead + row * width + i);
    }
    HWY_UNROLL(4)
    for (std::size_t v = 0; v < kVectors; ++v) {
      const std::size_t at = i + v * kWideStep;
      const VecD factor = hn::PromoteTo(d, hn::LoadU(h, x.data() + at));
      HWY_UNROLL(4)
      for (std::size_t row = 0; row < kRows; ++row) {
        const VecD value = hn::PromoteTo(d, hn::LoadU(h, rows + row * width + at));
        lanes[row][v] = hn::MulAdd(value, factor, lanes[row][v]);
      }
    }
  }
  HWY_UNROLL(4)
  for (std::size_t row = 0; row < kRows; ++row) {
    if (i < width) add_rest(rows + row * width, x, i, lanes[row]);
    sums[row] = add_wide_lanes(lanes[row]);
  }
}

void dots_in_double(std::span<const float> rows, std::span<const float> x, std::span<double> sums) {
  constexpr std::size_t kAtOnce = 4;
  std::size_t row = 0;
  for (; row + kAtOnce <= sums.size(); row += kAtOnce) {
    dot_rows<kAtOnce>(rows.data() + row * x.size(), x, sums.data() + row);
  }
  for (; row < sums.size(); ++row) {
    dot_rows<1>(rows.data() + row * x.size(), x, sums.data() + row);
  }
}

void collapse_streams(std::span<const float> streams, std::span<const float> weights,
                      Rounding rounding, std::span<float> out) {
  const F32 d;
  const std::size_t hidden = out.size();
  std::size_t i = 0;
  for (; i + kStep <= hidden; i += kStep) {
    VecF sum = hn::Mul(hn::Set(d, weights[0]), hn::LoadU(d, streams.data() + i));
    for (std::size_t s = 1; s < weights.size(); ++s) {
      const VecF stream = hn::LoadU(d, streams.data() + s * hidden + i);
      sum = hn::Add(sum, hn::Mul(hn::Set(d, weights[s]), stream));
    }
    hn::StoreU(round_vector(sum, rounding), d, out.data() + i);
  }
  for (; i < hidden; ++i) {
    float sum = weights[0] * streams[i];
    for (std::size_t s = 1; s < weights.size(); ++s) sum += weights[s] * streams[s * hidden + i];
    out[i] = round_value(sum, rounding);
  }
}

// One new value of every stream at one place.
void expand_value(const StreamExpansion& expansion, std::size_t i, std::span<float> streams) {
  const std::size_t count = expansion.post.size();
  const std::size_t hidden = expansion.y.size();
  std::array<float, kMostStreams> old;
  for (std::size_t j = 0; j < count; ++j) old[j] = streams[j * hidden + i];
  for (std::size_t k = 0; k < count; ++k) {
    float sum = expansion.comb[k] * old[0];
    for (std::size_t j = 1; j < count; ++j) sum += expansion.comb[j * count + k] * old[j];
    streams[k * hidden + i] =
        round_value(expansion.post[k] * expansion.y[i] + sum, expansion.rounding);
  }
}

template <std::size_t kCount>
void expand_some(const StreamExpansion& expansion, std::span<float> streams) {
  const F32 d;
  const std::size_t hidden = expansion.y.size();
  std::size_t i = 0;
  for (; i + kStep <= hidden; i += kStep) {
    VecF old[kCount];
    for (std::size_t j = 0; j < kCount; ++j) old[j] = hn::LoadU(d, &streams[j * hidden + i]);
    const VecF y = hn::LoadU(d, &expansion.y[i]);
    for (std::size_t k = 0; k < kCount; ++k) {
      VecF sum = hn::Mul(hn::Set(d, expansion.comb[k]), old[0]);
      for (std::size_t j = 1; j < kCount; ++j) {
        sum = hn::Add(sum, hn::Mul(hn::Set(d, expansion.comb[j * kCount + k]), old[j]));
      }
      const VecF result = hn::Add(hn::Mul(hn::Set(d, expansion.post[k]), y), sum);
      hn::StoreU(round_vector(result, expansion.rounding), d, &streams[k * hidden + i]);
    }
  }
  for (; i < hidden; ++i) expand_value(expansion, i, streams);
}

void expand_streams(const StreamExpansion& expansion, std::span<float> streams) {
  switch (expansion.post.size()) {
    case 1:
      return expand_some<1>(expansion, streams);
    case 2:
      return expand_some<2>(expansion, streams);
    case 4:
      return expand_some<4>(expansion, streams);
    case 8:
      return expand_some<8>(expansion, streams);
    default:  // a number that no model has had
      return reference::expand_streams(expansion, streams);
  }
}

using Four = hn::FixedTag<float, 4>;
using VecFour = hn::Vec<Four>;

HWY_INLINE void divide_by_sums(VecFour* vectors, float eps) {
  const Four d;
  VecFour sum = hn::Zero(d);
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < 4; ++i) sum = hn::Add(sum, vectors[i]);
  sum = hn::Add(sum, hn::Set(d, eps));
  HWY_UNROLL(4)
  for (std::size_t i = 0; i < 4; ++i) vectors[i] = hn::Div(vectors[i], sum);
}

HWY_INLINE void transpose(VecFour* vectors) {
  const Four d;
  const hn::RepartitionToWide<Four> wide;
  const auto pair = [&](VecFour value) { return hn::BitCast(wide, value); };
  const VecFour low01 = hn::InterleaveLower(d, vectors[0], vectors[1]);
  const VecFour low23 = hn::InterleaveLower(d, vectors[2], vectors[3]);
  const VecFour high01 = hn::InterleaveUpper(d, vectors[0], vectors[1]);
  const VecFour high23 = hn::InterleaveUpper(d, vectors[2], vectors[3]);
  vectors[0] = hn::BitCast(d, hn::InterleaveLower(wide, pair(low01), pair(low23)));
  vectors[1] = hn::BitCast(d, hn::InterleaveUpper(wide, pair(low01), pair(low23)));
  vectors[2] = hn::BitCast(d, hn::InterleaveLower(wide, pair(high01), pair(high23)));
  vectors[3] = hn::BitCast(d, hn::InterleaveUpper(wide, pair(high01), pair(high23)));
}

// Softmax weights + eps of a row whose exponentials are there.
void finish_softmax(float* row, float eps) {
  float sum = 0.0f;
  for (std::size_t i = 0; i < 4; ++i) sum += row[i];
  const float reciprocal = 1.0f / sum;
  for (std::size_t i = 0; i < 4; ++i) row[i] = row[i] * reciprocal + eps;
}

// Four streams: one vector a row or a column.
void mix_four(const StreamMixing& mixing, std::span<const float> mixes,
              const StreamCoefficients& out) {
  constexpr std::size_t kSigmoids = 8;
  constexpr std::size_t kMixes = 24;
  alignas(64) std::array<float, 32> values = {};
  for (std::size_t i = 0; i < kMixes; ++i) {
    const std::size_t part = i < 4 ? 0 : i < kSigmoids ? 1 : 2;
    values[i] = mixes[i] * mixing.scale[part] + mixing.base[i];
  }
  for (std::size_t i = 0; i < kSigmoids; ++i) values[i] = -values[i];
  for (std::size_t row = kSigmoids; row < kMixes; row += 4) {
    const float maximum = *std::max_element(values.data() + row, values.data() + row + 4);
    for (std::size_t i = row; i < row + 4; ++i) values[i] -= maximum;
  }
  const F32 d;
  for (std::size_t i = 0; i < values.size(); i += kStep) {
    hn::Store(exp_value(hn::Load(d, values.data() + i)), d, values.data() + i);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    out.pre[i] = 1.0f / (1.0f + values[i]) + mixing.eps;
    out.post[i] = 2.0f * (1.0f / (1.0f + values[4 + i]));
  }
  const Four four;
  VecFour rows[4];
  for (std::size_t row = 0; row < 4; ++row) {
    float* const start = values.data() + kSigmoids + 4 * row;
    finish_softmax(start, mixing.eps);
    rows[row] = hn::LoadU(four, start);
  }
  divide_by_sums(rows, mixing.eps);
  for (std::size_t iteration = 1; iteration < mixing.iterations; ++iteration) {
    transpose(rows);
    divide_by_sums(rows, mixing.eps);
    transpose(rows);
    divide_by_sums(rows, mixing.eps);
  }
  for (std::size_t row = 0; row < 4; ++row) hn::StoreU(rows[row], four, &out.comb[4 * row]);
}

void mix_coefficients(const StreamMixing& mixing, std::span<const float> mixes,
                      const StreamCoefficients& out) {
  if (mixing.streams != 4) return reference::mix_coefficients(mixing, mixes, out);
  mix_four(mixing, mixes, out);
}

void round_to_bf16(std::span<float> values) {
  const F32 d;
  std::size_t i = 0;
  for (; i + kStep <= values.size(); i += kStep) {
    hn::StoreU(round_bf16(hn::LoadU(d, values.data() + i)), d, values.data() + i);
  }
  for (; i < values.size(); ++i) values[i] = numerics::round_to_bf16(values[i]);
}

constexpr StreamKernels kStreams = {
    .dots_in_double = dots_in_double,
    .collapse = collapse_streams,
    .expand = expand_streams,
    .mix_coefficients = mix_coefficients,
    .round_to_bf16 = round_to_bf16,
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace locket::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace locket::kernels::cpu {

const StreamKernels& stream_kernels(InstructionSet set) {
  return set == InstructionSet::kAvx2 ? N_AVX2::kStreams : N_AVX3::kStreams;
}

}  // namespace locket::kernels::cpu

#endif
