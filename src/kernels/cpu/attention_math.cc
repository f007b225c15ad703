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

void weigh(const ScoreTile& tile, HeadState& head) {
  const F32 d;
  const auto* used = reinterpret_cast<const float*>(tile.used);
  const VecF scale = hn::Set(d, tile.scale);
  const VecF before = hn::Set(d, head.maximum);
  VecF largest = before;
  for (std::size_t slot = 0; slot < kAttentionTile; slot += kStep) {
    const VecF score = hn::Mul(scale, hn::LoadU(d, tile.scores + slot));
    hn::StoreU(score, d, tile.scores + slot);
    const auto mask = hn::MaskFromVec(hn::LoadU(d, used + slot));
    // The second operand wins if the first is NaN, as std::max(largest, score) has it.
    largest = hn::Max(hn::IfThenElse(mask, score, before), largest);
  }
  const float maximum = hn::GetLane(hn::MaxOfLanes(d, largest));
  alignas(64) float lanes[kLanes] = {};
  for (std::size_t slot = 0; slot < kAttentionTile; slot += kStep) {
    const VecF score = hn::LoadU(d, tile.scores + slot);
    const VecF weight =
        hn::And(exp_value(hn::Sub(score, hn::Set(d, maximum))), hn::LoadU(d, used + slot));
    float* lane = lanes + slot % kLanes;
    hn::Store(hn::Add(hn::Load(d, lane), weight), d, lane);
    hn::StoreU(round_vector(weight, tile.rounding), d, tile.scores + slot);
  }
  head.shrink = kernels::exp_value(head.maximum - maximum);
  head.maximum = maximum;
  head.denominator = head.denominator * head.shrink + add_lanes(lanes);
}

void accumulate(const ValueTile& tile, std::span<const HeadState> heads) {
  const F32 d;
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const VecF shrink = hn::Set(d, heads[h].shrink);
    float* out = tile.out + h * tile.out_stride;
    const float* parts = tile.parts + h * tile.parts_stride;
    std::size_t i = 0;
    for (; i + kStep <= tile.count; i += kStep) {
      const VecF kept = hn::Mul(hn::LoadU(d, out + i), shrink);
      hn::StoreU(hn::Add(kept, hn::LoadU(d, parts + i)), d, out + i);
    }
    for (; i < tile.count; ++i) out[i] = out[i] * heads[h].shrink + parts[i];
  }
}

void divide(std::span<float> values, float denominator, Rounding rounding) {
  const F32 d;
  const VecF divisor = hn::Set(d, denominator);
  std::size_t i = 0;
  for (; i + kStep <= values.size(); i += kStep) {
    const VecF quotient = hn::Div(hn::LoadU(d, values.data() + i), divisor);
    hn::StoreU(round_vector(quotient, rounding), d, values.data() + i);
  }
  for (; i < values.size(); ++i) values[i] = round_value(values[i] / denominator, rounding);
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
