#include "kernels/cpu/attention_math.h"

#include <algorithm>

#include "kernels/elementary.h"
#include "kernels/sum_order.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_math.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "kernels/cpu/float_math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace locket::kernels::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

constexpr std::size_t kStep = hn::MaxLanes(F32());
constexpr std::size_t kScoreStride = 64;

// The largest score of every lane; `maximum` stays where a score is NaN.
HWY_INLINE VecF largest_scores(const ScoreTile& tile, std::size_t lane, VecF maximum) {
  const F32 d;
  const VecF scale = hn::Set(d, tile.scale);
  for (std::size_t slot = 0; slot < tile.rows.size(); ++slot) {
    if (tile.rows[slot].empty()) continue;
    float* at = tile.scores + slot * kScoreStride + lane;
    const VecF score = hn::Mul(scale, hn::Load(d, at));
    hn::Store(score, d, at);
    // The second operand wins if the first is NaN, as std::max(maximum, score) has it.
    maximum = hn::Max(score, maximum);
  }
  return maximum;
}

// One vector of heads. The order of ordered_sum: a slot belongs to lane (slot mod 16) of the sum;
// here each of those lanes is a vector.
void weigh_heads(const ScoreTile& tile, std::size_t lane, const HeadStates& heads) {
  const F32 d;
  const VecF before = hn::Load(d, heads.maxima + lane);
  const VecF maximum = largest_scores(tile, lane, before);
  alignas(64) float sums[kLanes * kStep] = {};
  for (std::size_t slot = 0; slot < tile.rows.size(); ++slot) {
    float* at = tile.scores + slot * kScoreStride + lane;
    if (tile.rows[slot].empty()) {
      hn::Store(hn::Zero(d), d, at);
      continue;
    }
    const VecF weight = exp_value(hn::Sub(hn::Load(d, at), maximum));
    float* sum = sums + slot % kLanes * kStep;
    hn::Store(hn::Add(hn::Load(d, sum), weight), d, sum);
    hn::Store(round_vector(weight, tile.rounding), d, at);
  }
  for (std::size_t slot = tile.rows.size(); slot % 8 != 0; ++slot) {
    hn::Store(hn::Set(d, -0.0f), d, tile.scores + slot * kScoreStride + lane);
  }
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < half * kStep; i += kStep) {
      hn::Store(hn::Add(hn::Load(d, sums + i), hn::Load(d, sums + half * kStep + i)), d, sums + i);
    }
  }
  const VecF shrink = exp_value(hn::Sub(before, maximum));
  const VecF kept = hn::Mul(hn::Load(d, heads.denominators + lane), shrink);
  hn::Store(hn::Add(kept, hn::Load(d, sums)), d, heads.denominators + lane);
  hn::Store(maximum, d, heads.maxima + lane);
  hn::Store(shrink, d, heads.shrinks + lane);
}

void weigh(const ScoreTile& tile, const HeadStates& heads) {
  for (std::size_t lane = 0; lane < tile.lanes; lane += kStep) weigh_heads(tile, lane, heads);
}

void accumulate(const ValueTile& tile, const float* shrinks) {
  const F32 d;
  constexpr std::size_t kDims = 32;
  for (std::size_t h = 0; h < tile.heads; ++h) {
    const VecF shrink = hn::Set(d, shrinks[h]);
    for (std::size_t i = h * kDims; i < (h + 1) * kDims; i += kStep) {
      const VecF kept = hn::Mul(hn::Load(d, tile.sums + i), shrink);
      hn::Store(hn::Add(kept, hn::Load(d, tile.parts + i)), d, tile.sums + i);
    }
  }
}

constexpr std::size_t kSumDims = 32;

// Sums of one head from `dim` on.
HWY_INLINE VecF load_sums(const HeadOutput& output, std::size_t head, std::size_t dim) {
  const F32 d;
  const auto place = [&](std::size_t at) {
    return output.sums + (at / kSumDims * output.head_rows + head) * kSumDims + at % kSumDims;
  };
  if (dim % kStep == 0) return hn::Load(d, place(dim));
  const std::size_t end = std::min(dim + kStep, output.first_dim + output.head_dim);
  alignas(64) float block[kStep] = {};
  for (std::size_t at = dim; at < end; ++at) block[at - dim] = *place(at);
  return hn::Load(d, block);
}

void divide(const HeadOutput& output, const float* denominators, float* out) {
  const F32 d;
  for (std::size_t h = 0; h < output.heads; ++h) {
    const VecF divisor = hn::Set(d, denominators[h]);
    for (std::size_t dim = 0; dim < output.head_dim; dim += kStep) {
      const VecF sums = load_sums(output, h, output.first_dim + dim);
      const VecF value = round_vector(hn::Div(sums, divisor), output.rounding);
      float* to = out + h * output.head_dim + dim;
      if (dim + kStep <= output.head_dim) {
        hn::StoreU(value, d, to);
      } else {
        alignas(64) float block[kStep];
        hn::Store(value, d, block);
        std::copy_n(block, output.head_dim - dim, to);
      }
    }
  }
}

void combine_heads(const KeyTile& tile, float* scores) {
  const F32 d;
  for (std::size_t key = 0; key < tile.count; key += kStep) {
    VecF score = hn::Zero(d);
    for (std::size_t h = 0; h < tile.weights.size(); ++h) {
      const VecF dot = hn::LoadU(d, tile.dots + h * tile.dots_stride + key);
      // Like std::max(dot, 0): the dot product wins if it is NaN or -0.
      const VecF positive = hn::Max(hn::Zero(d), round_vector(dot, tile.rounding));
      const VecF part = hn::Mul(hn::Set(d, tile.weights[h]), positive);
      score = hn::Add(score, round_vector(part, tile.rounding));
    }
    alignas(64) float block[kStep];
    hn::Store(round_vector(score, tile.rounding), d, block);
    std::copy_n(block, std::min(kStep, tile.count - key), scores + key);
  }
}

constexpr AttentionMath kAttentionMath = {
    .weigh = weigh,
    .accumulate = accumulate,
    .divide = divide,
    .combine_heads = combine_heads,
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace locket::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace locket::kernels::cpu {

const AttentionMath& attention_math(InstructionSet set) {
  return set == InstructionSet::kAvx2 ? N_AVX2::kAttentionMath : N_AVX3::kAttentionMath;
}

}  // namespace locket::kernels::cpu

#endif
