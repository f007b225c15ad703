// Instructions are written out as assembly: a compiler would see that the results are of no use.
#include "kernels/cpu/machine_loops.h"

#include <array>
#include <cctype>
#include <cpuid.h>
#include <cstring>
#include <immintrin.h>

#include "base/check.h"
#include "hwy/base.h"
#include "hwy/targets.h"
#include "kernels/cpu/amx.h"

namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kBlockBytes = 16 * kLine;
// Far enough ahead that a line is there when its load comes; measured on a Sapphire Rapids guest.
constexpr std::size_t kAhead = 2048;
constexpr std::size_t kChains = 12;  // more than latency x instructions a cycle
constexpr std::size_t kStepsPerRound = 64;

std::uint64_t read_words(std::span<const std::byte> bytes) {
  std::array<std::uint64_t, 8> sums = {};
  for (std::size_t at = 0; at + kLine <= bytes.size(); at += kLine) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at + 8 * i, sizeof word);
      sums[i] += word;
    }
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t part : sums) sum += part;
  return sum;
}

}  // namespace
}  // namespace locket::kernels::cpu

HWY_PUSH_ATTRIBUTES("avx2,fma")
namespace locket::kernels::cpu {
namespace {

std::uint64_t read_avx2(std::span<const std::byte> bytes) {
  __m256i sums[4] = {};
  const std::byte* data = bytes.data();
  std::size_t at = 0;
  for (; at + kBlockBytes <= bytes.size(); at += kBlockBytes) {
#pragma GCC unroll 16
    for (std::size_t line = 0; line < kBlockBytes; line += kLine) {
      _mm_prefetch(reinterpret_cast<const char*>(data + at + line + kAhead), _MM_HINT_T0);
#pragma GCC unroll 2
      for (std::size_t half = 0; half < 2; ++half) {
        const auto* from = reinterpret_cast<const __m256i*>(data + at + line + 32 * half);
        const std::size_t chain = (line / kLine % 2) * 2 + half;
        sums[chain] = _mm256_add_epi64(sums[chain], _mm256_load_si256(from));
      }
    }
  }
  const __m256i sum =
      _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
  alignas(32) std::uint64_t lanes[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), sum);
  return lanes[0] + lanes[1] + lanes[2] + lanes[3] + read_words(bytes.subspan(at));
}

void busy_f32_256() {
  __m256 sums[kChains] = {};
  const __m256 one = _mm256_set1_ps(1.0f);
  for (std::size_t step = 0; step < kStepsPerRound; ++step) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kChains; ++i) {
      asm volatile("vfmadd231ps %1, %1, %0" : "+x"(sums[i]) : "x"(one));
    }
  }
}

}  // namespace
}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES

HWY_PUSH_ATTRIBUTES("avx512f,avx512bw,avx512dq,avx512vl,fma,avx2")
namespace locket::kernels::cpu {
namespace {

std::uint64_t read_avx512(std::span<const std::byte> bytes) {
  __m512i sums[8] = {};
  const std::byte* data = bytes.data();
  std::size_t at = 0;
  for (; at + kBlockBytes <= bytes.size(); at += kBlockBytes) {
#pragma GCC unroll 16
    for (std::size_t line = 0; line < kBlockBytes / kLine; ++line) {
      const std::byte* from = data + at + line * kLine;
      _mm_prefetch(reinterpret_cast<const char*>(from + kAhead), _MM_HINT_T0);
      sums[line % 8] = _mm512_add_epi64(sums[line % 8], _mm512_load_si512(from));
    }
  }
  __m512i sum = sums[0];
  for (std::size_t i = 1; i < 8; ++i) sum = _mm512_add_epi64(sum, sums[i]);
  alignas(64) std::array<std::uint64_t, 8> lanes;
  _mm512_store_si512(lanes.data(), sum);
  std::uint64_t total = read_words(bytes.subspan(at));
  for (const std::uint64_t lane : lanes) total += lane;
  return total;
}

void busy_f32_512() {
  __m512 sums[kChains] = {};
  const __m512 one = _mm512_set1_ps(1.0f);
  for (std::size_t step = 0; step < kStepsPerRound; ++step) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kChains; ++i) {
      asm volatile("vfmadd231ps %1, %1, %0" : "+v"(sums[i]) : "v"(one));
    }
  }
}

void busy_bf16() {
  __m512i sums[kChains] = {};
  const __m512i ones = _mm512_set1_epi32(0x3f803f80);
  for (std::size_t step = 0; step < kStepsPerRound; ++step) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kChains; ++i) {
      asm volatile("vdpbf16ps %1, %1, %0" : "+v"(sums[i]) : "v"(ones));
    }
  }
}

void busy_int8() {
  __m512i sums[kChains] = {};
  const __m512i ones = _mm512_set1_epi8(1);
  for (std::size_t step = 0; step < kStepsPerRound; ++step) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kChains; ++i) {
      asm volatile("vpdpbusd %1, %1, %0" : "+v"(sums[i]) : "v"(ones));
    }
  }
}

}  // namespace
}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES

HWY_PUSH_ATTRIBUTES("amx-tile,amx-int8,amx-bf16")
namespace locket::kernels::cpu {
namespace {

constexpr std::size_t kTileRows = 16;
constexpr std::size_t kTileBytes = kTileRows * kLine;

// Tiles of this thread: four sums (0 to 3) and two operands of each side (4 to 7), full size.
class BusyTiles {
 public:
  BusyTiles() {
    load_tile_config({});
    alignas(64) std::array<std::byte, kTileBytes> ones;
    ones.fill(std::byte{1});
    asm volatile("" : : "m"(ones));
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    _tile_loadd(4, ones.data(), kLine);
    _tile_loadd(5, ones.data(), kLine);
    _tile_loadd(6, ones.data(), kLine);
    _tile_loadd(7, ones.data(), kLine);
  }
  BusyTiles(const BusyTiles&) = delete;
  BusyTiles& operator=(const BusyTiles&) = delete;
  ~BusyTiles() { release_tiles(); }
};

void busy_amx_int8() {
  for (std::size_t step = 0; step < kStepsPerRound; ++step) {
    asm volatile(
        "tdpbssd %tmm6, %tmm4, %tmm0\n\t"
        "tdpbssd %tmm7, %tmm4, %tmm1\n\t"
        "tdpbssd %tmm6, %tmm5, %tmm2\n\t"
        "tdpbssd %tmm7, %tmm5, %tmm3");
  }
}

void busy_amx_bf16() {
  for (std::size_t step = 0; step < kStepsPerRound; ++step) {
    asm volatile(
        "tdpbf16ps %tmm6, %tmm4, %tmm0\n\t"
        "tdpbf16ps %tmm7, %tmm4, %tmm1\n\t"
        "tdpbf16ps %tmm6, %tmm5, %tmm2\n\t"
        "tdpbf16ps %tmm7, %tmm5, %tmm3");
  }
}

void keep_tiles_busy(void (*block)(), std::size_t rounds) {
  const BusyTiles tiles;
  for (std::size_t round = 0; round < rounds; ++round) block();
}

}  // namespace
}  // namespace locket::kernels::cpu
HWY_POP_ATTRIBUTES

namespace locket::kernels::cpu {
namespace {

bool has_avx512() { return (hwy::SupportedTargets() & HWY_AVX3) != 0; }

// A block of a unit and the operations of one of its instructions.
struct BusyBlock {
  void (*run)() = nullptr;
  double instructions = 0;
  double operations = 0;  // of an instruction

  double per_round() const {
    return static_cast<double>(kStepsPerRound) * instructions * operations;
  }
};

constexpr double kTileProducts = 16.0 * 16.0;

BusyBlock block_of(PeakUnit unit) {
  switch (unit) {
    case PeakUnit::kF32:
      if (has_avx512()) return {busy_f32_512, kChains, 2 * 16};
      return {busy_f32_256, kChains, 2 * 8};
    case PeakUnit::kBf16:
      return {busy_bf16, kChains, 2 * 32};
    case PeakUnit::kInt8:
      return {busy_int8, kChains, 2 * 64};
    case PeakUnit::kAmxBf16:
      return {busy_amx_bf16, 4, 2 * 32 * kTileProducts};
    case PeakUnit::kAmxInt8:
      return {busy_amx_int8, 4, 2 * 64 * kTileProducts};
    case PeakUnit::kCount:
      break;
  }
  LOCKET_CHECK(false);
}

struct CpuId {
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
};

CpuId cpu_id(unsigned leaf) {
  CpuId id;
  __get_cpuid(leaf, &id.eax, &id.ebx, &id.ecx, &id.edx);
  return id;
}

}  // namespace

std::uint64_t read_wide(std::span<const std::byte> bytes) {
  if (has_avx512()) return read_avx512(bytes);
  if ((hwy::SupportedTargets() & HWY_AVX2) != 0) return read_avx2(bytes);
  return read_words(bytes);
}

bool has_unit(PeakUnit unit) {
  switch (unit) {
    case PeakUnit::kF32:
      return (hwy::SupportedTargets() & HWY_AVX2) != 0;
    case PeakUnit::kBf16:
      return has_avx512() && __builtin_cpu_supports("avx512bf16") != 0;
    case PeakUnit::kInt8:
      return has_avx512() && __builtin_cpu_supports("avx512vnni") != 0;
    case PeakUnit::kAmxBf16:
    case PeakUnit::kAmxInt8:
      return amx_is_usable();
    case PeakUnit::kCount:
      break;
  }
  return false;
}

double keep_busy(PeakUnit unit, std::size_t rounds) {
  const BusyBlock block = block_of(unit);
  const double operations = static_cast<double>(rounds) * block.per_round();
  if (unit == PeakUnit::kAmxBf16 || unit == PeakUnit::kAmxInt8) {
    keep_tiles_busy(block.run, rounds);
    return operations;
  }
  for (std::size_t round = 0; round < rounds; ++round) block.run();
  return operations;
}

std::string processor_class() {
  const CpuId vendor = cpu_id(0);
  const unsigned version = cpu_id(1).eax;
  std::string name;
  for (const unsigned part : {vendor.ebx, vendor.edx, vendor.ecx}) {
    for (unsigned i = 0; i < 4; ++i) {
      const auto letter = static_cast<unsigned char>(part >> (8 * i));
      if (std::isalnum(letter) != 0) name += static_cast<char>(std::tolower(letter));
    }
  }
  const unsigned base_family = version >> 8 & 15;
  const unsigned family = base_family == 15 ? 15 + (version >> 20 & 255) : base_family;
  const unsigned model = (version >> 4 & 15) | (version >> 16 & 15) << 4;
  return name + "-" + std::to_string(family) + "-" + std::to_string(model);
}

}  // namespace locket::kernels::cpu
