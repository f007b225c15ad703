// Tile instructions are written out as assembly: the intrinsics of GCC 12 do not tell the compiler
// that loads read memory.
#include "hwy/base.h"
#if HWY_COMPILER_GCC_ACTUAL
// GCC 12 takes the undefined pass-through operand inside its own intrinsics for a fault.
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wmaybe-uninitialized")
HWY_DIAGNOSTICS_OFF(disable : 4700, ignored "-Wuninitialized")
#endif
#include <algorithm>
#include <array>
#include <bit>
#include <immintrin.h>

#include "base/check.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/amx_fp4.h"
#include "kernels/cpu/bf16_tables.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kTileWords = kGroupPairs * kTileLanes;
constexpr std::size_t kTileBytes = kTileWords * sizeof(std::uint32_t);
constexpr std::size_t kFp4Bytes = tile_bytes(WeightFormat::kFp4);

// Tile registers: totals of the lane groups, then one for x, then weights of each lane group.
constexpr int kXTile = 2;
constexpr int kWeightTiles = 3;
static_assert(kAmxLaneGroups == 2);

// The codes in bfloat16, twice; -0 as +0, which gives the same sums and may saturate at zero.
constexpr WordTable unsigned_zero_table() {
  WordTable table = fp4_table();
  for (std::uint16_t& word : table.words) {
    if (word == 0x8000) word = 0;
  }
  return table;
}

constexpr WordTable kCodes = unsigned_zero_table();

// Bytes that begin `shift` bits later in each quad word: codes of words move down by as much; what
// comes in above them does not matter.
constexpr ByteTable shifted_bytes(unsigned shift) {
  ByteTable order{};
  for (unsigned i = 0; i < 64; ++i) {
    order.bytes[i] = static_cast<std::uint8_t>((i % 8 * 8 + shift) % 64);
  }
  return order;
}

constexpr ByteTable kBy4 = shifted_bytes(4);
constexpr ByteTable kBy8 = shifted_bytes(8);
constexpr ByteTable kBy12 = shifted_bytes(12);

// Scale codes of 16 rows, given in every 16 bytes, to the upper byte of both words of a lane.
constexpr ByteTable scale_places() {
  constexpr std::uint8_t kZero = 0x80;
  ByteTable order{};
  for (unsigned i = 0; i < 64; ++i) {
    order.bytes[i] = i % 2 == 0 ? kZero : static_cast<std::uint8_t>(i / 4);
  }
  return order;
}

constexpr ByteTable kScalePlaces = scale_places();

// Scales that only shrink a weight, and leave it normal: its exponent is lowered in place.
ScaleRange shrinking(const ScaleRange& range) {
  const ScaleRange normal = normal_scales(WeightFormat::kFp4);
  constexpr unsigned kOne = 127;
  return {.first = std::max(range.first, normal.first), .last = std::min(range.last, kOne)};
}

}  // namespace
}  // namespace locket::kernels::cpu

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bf16,fma,avx2")
namespace locket::kernels::cpu {
namespace {

template <int kTile>
HWY_INLINE void load_tile(const void* at, std::size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(at), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
HWY_INLINE void store_tile(void* at, std::size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(at), "r"(stride), "i"(kTile) : "memory");
}

// totals += x * weights
template <int kTotals, int kWeights>
HWY_INLINE void multiply_tile() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0"
               :
               : "i"(kTotals), "i"(kXTile), "i"(kWeights));
}

HWY_INLINE bool all_inside(const std::byte* scales, std::size_t count, const ScaleRange& range) {
  const __m512i first = _mm512_set1_epi8(static_cast<char>(range.first));
  const __m512i span = _mm512_set1_epi8(static_cast<char>(range.last - range.first));
  __mmask64 outside = 0;
  for (std::size_t i = 0; i < count; i += 64) {
    const std::size_t rest = std::min<std::size_t>(64, count - i);
    const __mmask64 lanes = ~std::uint64_t{0} >> (64 - rest);
    const __m512i codes = _mm512_maskz_loadu_epi8(lanes, scales + i);
    outside |= _mm512_mask_cmpgt_epu8_mask(lanes, _mm512_sub_epi8(codes, first), span);
  }
  return outside == 0;
}

// Decodes tiles to bfloat16 pairs with their scales in them. A lookup of words takes both ports of
// 512-bit instructions, a shift or a saturating subtraction the first one, a shift of bytes the
// second one (Golden Cove).
class TileDecoder {
 public:
  HWY_INLINE TileDecoder()
      : table_(_mm512_load_si512(kCodes.words.data())),
        by_4_(_mm512_load_si512(kBy4.bytes.data())),
        by_8_(_mm512_load_si512(kBy8.bytes.data())),
        by_12_(_mm512_load_si512(kBy12.bytes.data())),
        scale_places_(_mm512_load_si512(kScalePlaces.bytes.data())) {}

  HWY_INLINE void decode(const std::byte* tile, const std::byte* scales, std::byte* out) const {
    const __m512i places =
        _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(scales)));
    const __m512i exponents = _mm512_srli_epi16(_mm512_shuffle_epi8(places, scale_places_), 1);
    const __m512i lowered = _mm512_sub_epi16(_mm512_set1_epi16(127 << 7), exponents);
#pragma GCC unroll 4
    for (std::size_t eight = 0; eight < 4; ++eight, tile += 64, out += 4 * 64) {
      const __m512i codes = _mm512_load_si512(tile);
      const __m512i words[4] = {codes, moved(by_4_, codes), moved(by_8_, codes),
                                moved(by_12_, codes)};
#pragma GCC unroll 4
      for (std::size_t q = 0; q < 4; ++q) {
        _mm512_store_si512(out + q * 64, _mm512_subs_epu16(weights(words[q]), lowered));
      }
    }
  }

 private:
  HWY_INLINE __m512i weights(__m512i codes) const {
    return _mm512_permutexvar_epi16(codes, table_);
  }
  HWY_INLINE static __m512i moved(__m512i by, __m512i codes) {
    return _mm512_multishift_epi64_epi8(by, codes);
  }

  __m512i table_;
  __m512i by_4_;
  __m512i by_8_;
  __m512i by_12_;
  __m512i scale_places_;
};

// Rows of x whose bit is not in `loose`, the others as zeros.
HWY_INLINE void copy_firm_rows(const AmxProduct& p, const std::byte* x, unsigned loose,
                               std::byte* out) {
  for (std::size_t row = 0; row < p.block_rows; ++row, x += p.x_row_bytes, out += 64) {
    const bool firm = ((loose >> row) & 1U) == 0;
    _mm512_store_si512(out, firm ? _mm512_loadu_si512(x) : _mm512_setzero_si512());
  }
}

// One group of columns: x and the decoded weights of the lane groups.
struct GroupTiles {
  const std::byte* x;
  const std::byte* weights;
  std::size_t lane_group_bytes;
};

// The sum of one row of x with 16 rows of decoded weights, in the order of sum_order.h.
__m512 ordered_sum_of(const std::byte* x, const std::byte* weights) {
  const auto* pairs = reinterpret_cast<const std::uint32_t*>(x);
  __m512 sum = _mm512_setzero_ps();
  for (std::size_t pair = 0; pair < kGroupPairs; ++pair) {
    sum = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_load_si512(weights + pair * 64),
                           (__m512bh)_mm512_set1_epi32(static_cast<int>(pairs[pair])));
  }
  return sum;
}

// totals += sums of one group for the loose rows.
void add_loose_rows(const AmxProduct& p, const GroupTiles& tiles, unsigned loose, float* totals) {
  for (; loose != 0; loose &= loose - 1) {
    const auto row = static_cast<std::size_t>(std::countr_zero(loose));
    for (std::size_t lane = 0; lane < p.lane_groups; ++lane) {
      const __m512 sum = ordered_sum_of(tiles.x + row * p.x_row_bytes,
                                        tiles.weights + lane * tiles.lane_group_bytes);
      float* total = totals + (row * p.lane_groups + lane) * kTileLanes;
      _mm512_storeu_ps(total, _mm512_add_ps(_mm512_loadu_ps(total), sum));
    }
  }
}

template <std::size_t kLaneGroups, int kLane = 0>
HWY_INLINE void load_totals(const float* totals) {
  if constexpr (kLane < kLaneGroups) {
    load_tile<kLane>(totals + kLane * kTileLanes, kLaneGroups * kTileLanes * sizeof(float));
    load_totals<kLaneGroups, kLane + 1>(totals);
  }
}

template <std::size_t kLaneGroups, int kLane = 0>
HWY_INLINE void store_totals(float* totals) {
  if constexpr (kLane < kLaneGroups) {
    store_tile<kLane>(totals + kLane * kTileLanes, kLaneGroups * kTileLanes * sizeof(float));
    store_totals<kLaneGroups, kLane + 1>(totals);
  }
}

template <std::size_t kLaneGroups, int kLane = 0>
HWY_INLINE void multiply_lanes(const std::byte* weights, std::size_t lane_group_bytes) {
  if constexpr (kLane < kLaneGroups) {
    constexpr int kTile = kWeightTiles + kLane;
    load_tile<kTile>(weights + kLane * lane_group_bytes, 64);
    multiply_tile<kLane, kTile>();
    multiply_lanes<kLaneGroups, kLane + 1>(weights, lane_group_bytes);
  }
}

// Totals in tile registers += sums of one group.
template <std::size_t kLaneGroups>
HWY_INLINE void multiply_group(const AmxProduct& p, const GroupTiles& tiles, unsigned loose,
                               float* totals) {
  if (HWY_LIKELY(loose == 0)) {
    load_tile<kXTile>(tiles.x, p.x_row_bytes);
    multiply_lanes<kLaneGroups>(tiles.weights, tiles.lane_group_bytes);
    return;
  }
  alignas(64) std::byte firm[kAmxTokens * 64];
  copy_firm_rows(p, tiles.x, loose, firm);
  load_tile<kXTile>(firm, 64);
  multiply_lanes<kLaneGroups>(tiles.weights, tiles.lane_group_bytes);
  store_totals<kLaneGroups>(totals);
  add_loose_rows(p, tiles, loose, totals);
  load_totals<kLaneGroups>(totals);
}

template <std::size_t kLaneGroups>
void multiply_blocks(const AmxProduct& p) {
  const std::size_t lane_group_bytes = p.groups * kTileBytes;
  for (std::size_t block = 0; block < p.blocks; ++block) {
    const std::byte* x = p.x + block * p.block_rows * p.x_row_bytes;
    const std::uint16_t* loose = p.loose + block * p.loose_stride;
    float* totals = p.totals + block * p.block_rows * kLaneGroups * kTileLanes;
    load_totals<kLaneGroups>(totals);
    for (std::size_t group = 0; group < p.groups; ++group) {
      multiply_group<kLaneGroups>(p,
                                  {x + group * 64, p.panel + group * kTileBytes, lane_group_bytes},
                                  loose[group], totals);
    }
    store_totals<kLaneGroups>(totals);
  }
}

// For one block of tokens: decodes a group while the tiles multiply one that was decoded some time
// before, because a tile load waits for stores that have not reached the cache yet.
template <std::size_t kLaneGroups>
void stream_groups(const Fp4Block& block, const AmxProduct& p) {
  constexpr std::size_t kAhead = 4096;  // bytes of a lane group
  constexpr std::size_t kLag = 4;       // groups
  constexpr std::size_t kRing = 8;
  alignas(64) std::byte decoded[kRing][kLaneGroups * kTileBytes];
  const TileDecoder decoder;
  load_totals<kLaneGroups>(p.totals);
  for (std::size_t step = 0; step < block.groups + kLag; ++step) {
    for (std::size_t lane = 0; lane < kLaneGroups && step < block.groups; ++lane) {
      const std::size_t at = lane * block.lane_group_tiles + step;
      prefetch_lines(block.tiles + at * kFp4Bytes + kAhead, kFp4Bytes);
      decoder.decode(block.tiles + at * kFp4Bytes, block.scales + at * kTileLanes,
                     decoded[step % kRing] + lane * kTileBytes);
    }
    if (step < kLag) continue;
    const std::size_t group = step - kLag;
    multiply_group<kLaneGroups>(p, {p.x + group * 64, decoded[group % kRing], kTileBytes},
                                p.loose[group], p.totals);
  }
  store_totals<kLaneGroups>(p.totals);
}

}  // namespace

bool decode_scaled(const Fp4Block& block, std::byte* panel) {
  const ScaleRange range = shrinking(block.after_sum);
  if (range.first > range.last) return false;
  const TileDecoder decoder;
  for (std::size_t lane = 0; lane < block.lane_groups; ++lane) {
    const std::byte* tile = block.tiles + lane * block.lane_group_tiles * kFp4Bytes;
    const std::byte* scales = block.scales + lane * block.lane_group_tiles * kTileLanes;
    if (!all_inside(scales, block.groups * kTileLanes, range)) return false;
    for (std::size_t group = 0; group < block.groups; ++group) {
      // The same lanes' next panel.
      prefetch_lines(tile + block.groups * kFp4Bytes, kFp4Bytes);
      decoder.decode(tile, scales, panel);
      tile += kFp4Bytes;
      scales += kTileLanes;
      panel += kTileBytes;
    }
  }
  return true;
}

void multiply_tiles(const AmxProduct& product) {
  LOCKET_DCHECK(product.lane_groups >= 1 && product.lane_groups <= kAmxLaneGroups);
  if (product.lane_groups == 1) return multiply_blocks<1>(product);
  multiply_blocks<2>(product);
}

bool multiply_stream(const Fp4Block& block, const AmxProduct& product) {
  LOCKET_DCHECK(product.blocks == 1 && block.groups == product.groups);
  const ScaleRange range = shrinking(block.after_sum);
  if (range.first > range.last) return false;
  for (std::size_t lane = 0; lane < block.lane_groups; ++lane) {
    const std::byte* scales = block.scales + lane * block.lane_group_tiles * kTileLanes;
    if (!all_inside(scales, block.groups * kTileLanes, range)) return false;
  }
  if (block.lane_groups == 1) {
    stream_groups<1>(block, product);
  } else {
    stream_groups<2>(block, product);
  }
  return true;
}

AmxScope::AmxScope(std::size_t block_rows) {
  LOCKET_DCHECK(block_rows >= 1 && block_rows <= kAmxTokens);
  TileConfig config;
  for (std::size_t tile = 0; tile < kWeightTiles; ++tile) {
    config.rows[tile] = static_cast<std::uint8_t>(block_rows);
  }
  load_tile_config(config);
}

AmxScope::~AmxScope() { release_tiles(); }

}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES
