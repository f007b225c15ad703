#include "kernels/cpu/selection.h"

#include <bit>
#include <cmath>

#include "kernels/reference/reference.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/selection.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace locket::kernels::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
constexpr std::size_t kStep = hn::MaxLanes(F32());

std::size_t ranks_from(const ScoreStretch& stretch, float least, std::uint64_t* ranks) {
  const F32 d;
  const auto bound = hn::Set(d, least);
  const float* scores = stretch.scores.data();
  const std::size_t whole = stretch.scores.size() / kStep * kStep;
  std::size_t count = 0;
  for (std::size_t i = 0; i < whole; i += kStep) {
    const auto passes = hn::Ge(hn::LoadU(d, scores + i), bound);
    if (HWY_LIKELY(hn::AllFalse(d, passes))) continue;
    std::uint8_t bytes[8] = {};
    hn::StoreMaskBits(d, passes, bytes);
    unsigned bits = bytes[0] | (kStep > 8 ? bytes[1] << 8 : 0);
    for (; bits != 0; bits &= bits - 1) {
      const auto at = i + static_cast<std::size_t>(std::countr_zero(bits));
      ranks[count++] = entry_rank(scores[at], stretch.first + static_cast<std::int32_t>(at));
    }
  }
  const ScoreStretch rest = {.scores = stretch.scores.subspan(whole),
                             .first = stretch.first + static_cast<std::int32_t>(whole)};
  return count + reference::ranks_from(rest, least, ranks + count);
}

constexpr std::size_t kEight = 8;

// Blocks of eight, as released; others are rare.
void block_maxima(std::span<const float> scores, std::size_t size, std::span<float> maxima) {
  if (size != kEight) return reference::block_maxima(scores, size, maxima);
  const F32 d;
  const auto lowest = hn::Set(d, -HUGE_VALF);
  const std::size_t whole = scores.size() / kStep * kStep;
  for (std::size_t i = 0; i < whole; i += kStep) {
    // The second operand wins over NaN.
    auto best = hn::Max(hn::LoadU(d, scores.data() + i), lowest);
    best = hn::Max(best, hn::Shuffle2301(best));
    best = hn::Max(best, hn::Shuffle1032(best));
    best = hn::Max(best, hn::SwapAdjacentBlocks(best));
    HWY_ALIGN float lanes[kStep];
    hn::Store(best, d, lanes);
    for (std::size_t lane = 0; lane < kStep; lane += kEight) {
      maxima[(i + lane) / kEight] = lanes[lane];
    }
  }
  reference::block_maxima(scores.subspan(whole), size, maxima.subspan(whole / kEight));
}

constexpr SelectionKernels kSelection = {.ranks_from = ranks_from, .block_maxima = block_maxima};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace locket::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace locket::kernels::cpu {

SelectionKernels selection_kernels(InstructionSet set) {
  return set == InstructionSet::kAvx2 ? N_AVX2::kSelection : N_AVX3::kSelection;
}

}  // namespace locket::kernels::cpu

#endif
