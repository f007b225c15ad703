// The tile registers of AMX: whether they may be used, and their shapes. A thread that loads shapes
// has tiles until it releases them.
#pragma once

#include <array>
#include <cstdint>

namespace locket::kernels::cpu {

// The processor has tiles with int8 and bfloat16, and the system has given them to this process.
// Asked once; thread-safe.
bool amx_is_usable();

// As LDTILECFG reads it: all eight tiles have 16 rows of 64 bytes, unless somebody says otherwise.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::array<std::uint8_t, 14> reserved = {};
  std::array<std::uint16_t, 16> row_bytes = {64, 64, 64, 64, 64, 64, 64, 64};
  std::array<std::uint8_t, 16> rows = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// Not by the intrinsic: GCC 12 takes it to read 8 bytes, and leaves out stores to the others.
// REQUIRES: amx_is_usable().
inline void load_tile_config(const TileConfig& config) {
  asm volatile("ldtilecfg %0" : : "m"(config));
}
inline void release_tiles() { asm volatile("tilerelease"); }

}  // namespace locket::kernels::cpu
