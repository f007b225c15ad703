#include "kernels/cpu/attention_products.h"

#include <algorithm>

#include "kernels/cpu/panel.h"
#include "kernels/sum_order.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_products.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace locket::kernels::cpu {
namespace HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using VecF = hn::Vec<F32>;

constexpr std::size_t kStep = hn::MaxLanes(F32());
static_assert(kBlockDims == kSumGroup);
// Sums that the registers hold beside a few vectors that are read.
constexpr std::size_t kMostSums = kStep == 16 ? 16 : 8;

// Scores of kSlots slots with kVectors vectors out of kHeads lanes.
template <std::size_t kHeads, std::size_t kVectors, std::size_t kSlots>
HWY_INLINE void multiply_slots(const KeyProduct& p, std::size_t lane, std::size_t slot) {
  const F32 d;
  const float* query = p.query + lane;
  const float* key = p.keys + slot * kBlockDims;
  VecF sums[kSlots][kVectors];
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kSlots * kVectors; ++i) {
    sums[i / kVectors][i % kVectors] = hn::Zero(d);
  }
  for (std::size_t eight = 0; eight < kBlockDims; eight += 8) {
    HWY_UNROLL(8)
    for (std::size_t step = 0; step < 8; ++step) {
      const std::size_t k = kOrderOfEight[step];
      VecF heads[kVectors];
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) {
        heads[v] = hn::Load(d, query + k * kHeads + v * kStep);
      }
      HWY_UNROLL(16)
      for (std::size_t s = 0; s < kSlots; ++s) {
        const VecF value = hn::Set(d, key[s * kBlockDims + k]);
        HWY_UNROLL(4)
        for (std::size_t v = 0; v < kVectors; ++v) {
          sums[s][v] = hn::MulAdd(heads[v], value, sums[s][v]);
        }
      }
    }
    query += 8 * kHeads;
    key += 8;
  }
  float* scores = p.scores + slot * kMostHeads + lane;
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kSlots * kVectors; ++i) {
    float* total = scores + i / kVectors * kMostHeads + i % kVectors * kStep;
    const VecF before = p.start == KeyProduct::Start::kZero ? hn::Zero(d) : hn::Load(d, total);
    hn::Store(hn::Add(before, sums[i / kVectors][i % kVectors]), d, total);
  }
}

template <std::size_t kLaneGroups>
void multiply_heads_of(const KeyProduct& p) {
  constexpr std::size_t kHeads = kLaneGroups * kTileLanes;
  constexpr std::size_t kVectors = kStep == kTileLanes ? kLaneGroups : 2;
  constexpr std::size_t kSlots = kVectors == 3 ? 4 : kMostSums / kVectors;
  static_assert(kSlotBlock % kSlots == 0);
  const std::size_t slots = p.rows.size();
  std::size_t next = 0;
  for (std::size_t slot = 0; slot < slots; slot += kSlots) {
    const auto block = p.rows.subspan(slot, std::min(kSlots, slots - slot));
    const std::size_t end = (slot + block.size()) * p.ahead.size() / slots;
    prefetch_rows(p.ahead.subspan(next, end - next), p.row_width);
    next = end;
    const bool empty = std::all_of(block.begin(), block.end(),
                                   [](const AttentionRow& row) { return row.empty(); });
    if (empty) continue;
    for (std::size_t lane = 0; lane < kHeads; lane += kVectors * kStep) {
      multiply_slots<kHeads, kVectors, kSlots>(p, lane, slot);
    }
  }
}

void multiply_keys(const KeyProduct& product) {
  switch (product.lane_groups) {
    case 1:
      return multiply_heads_of<1>(product);
    case 2:
      return multiply_heads_of<2>(product);
    case 3:
      return multiply_heads_of<3>(product);
    default:
      return multiply_heads_of<4>(product);
  }
}

constexpr std::size_t kDimVectors = 2;
constexpr std::size_t kHeadsAtOnce = kMostSums / kDimVectors;

// One slot of kHeadsAtOnce heads and kDimVectors vectors of dims.
HWY_INLINE void add_slot(const float* values, const float* weights,
                         VecF (&sums)[kHeadsAtOnce][kDimVectors]) {
  const F32 d;
  VecF dims[kDimVectors];
  HWY_UNROLL(2)
  for (std::size_t v = 0; v < kDimVectors; ++v) dims[v] = hn::Load(d, values + v * kStep);
  HWY_UNROLL(8)
  for (std::size_t h = 0; h < kHeadsAtOnce; ++h) {
    const VecF weight = hn::Set(d, weights[h]);
    HWY_UNROLL(2)
    for (std::size_t v = 0; v < kDimVectors; ++v) {
      sums[h][v] = hn::MulAdd(dims[v], weight, sums[h][v]);
    }
  }
}

HWY_INLINE void sum_half(const float* values, const float* weights, std::size_t eights,
                         VecF (&sums)[kHeadsAtOnce][kDimVectors]) {
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kHeadsAtOnce * kDimVectors; ++i) {
    sums[i / kDimVectors][i % kDimVectors] = hn::Zero(F32());
  }
  for (std::size_t eight = 0; eight < eights; ++eight) {
    HWY_UNROLL(8)
    for (std::size_t step = 0; step < 8; ++step) {
      const std::size_t slot = kOrderOfEight[step];
      add_slot(values + slot * kBlockDims, weights + slot * kMostHeads, sums);
    }
    values += 8 * kBlockDims;
    weights += 8 * kMostHeads;
  }
}

HWY_INLINE void multiply_block(const ValueProduct& p, std::size_t head, std::size_t dim) {
  const F32 d;
  float* parts = p.parts + head * kBlockDims + dim;
  VecF sums[kHeadsAtOnce][kDimVectors];
  sum_half(p.values + dim, p.weights + head, p.eights[0], sums);
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kHeadsAtOnce * kDimVectors; ++i) {
    float* part = parts + i / kDimVectors * kBlockDims + i % kDimVectors * kStep;
    hn::Store(hn::Add(hn::Zero(d), sums[i / kDimVectors][i % kDimVectors]), d, part);
  }
  if (p.eights[1] == 0) return;
  sum_half(p.values + kSumGroup * kBlockDims + dim, p.weights + kSumGroup * kMostHeads + head,
           p.eights[1], sums);
  HWY_UNROLL(16)
  for (std::size_t i = 0; i < kHeadsAtOnce * kDimVectors; ++i) {
    float* part = parts + i / kDimVectors * kBlockDims + i % kDimVectors * kStep;
    hn::Store(hn::Add(hn::Load(d, part), sums[i / kDimVectors][i % kDimVectors]), d, part);
  }
}

void multiply_values(const ValueProduct& product) {
  for (std::size_t head = 0; head < product.heads; head += kValueHeads) {
    for (std::size_t i = 0; i < kValueHeads; i += kHeadsAtOnce) {
      for (std::size_t dim = 0; dim < kBlockDims; dim += kDimVectors * kStep) {
        multiply_block(product, head + i, dim);
      }
    }
  }
}

constexpr AttentionProducts kProducts = {
    .multiply_keys = multiply_keys,
    .multiply_values = multiply_values,
};

#endif

}  // namespace HWY_NAMESPACE
}  // namespace locket::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace locket::kernels::cpu {

const AttentionProducts& attention_products(InstructionSet set) {
  return set == InstructionSet::kAvx2 ? N_AVX2::kProducts : N_AVX3::kProducts;
}

void prefetch_rows(std::span<const AttentionRow> rows, std::size_t row_width) {
  constexpr std::size_t kLine = 64;
  constexpr int kForReading = 0;
  constexpr int kSecondLevel = 2;
  for (const AttentionRow& row : rows) {
    if (row.empty()) continue;
    const std::byte* last = row.bytes + row_bytes(row.format, row_width) - 1;
    for (const std::byte* at = row.bytes; at < last; at += kLine) {
      __builtin_prefetch(at, kForReading, kSecondLevel);
    }
    __builtin_prefetch(last, kForReading, kSecondLevel);
  }
}

}  // namespace locket::kernels::cpu

#endif
