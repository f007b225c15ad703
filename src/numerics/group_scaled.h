// The model's quantizers: groups of consecutive elements that share one scale. They are part of the
// model (trained with them), computed in float32 from the given values; official kernel.py,
// act_quant and fp4_act_quant.
//
//   quantizer            group  floor of amax  scale                              codes
//   fp8  (window rows,    32    1e-4           2^ceil(log2(amax * (1/448)))       E4M3
//         GEMM inputs)
//   fp4 index            32    6 * 2^-126     2^ceil(log2(amax * (1/6)))         E2M1, packed
//   fp4 main rows        16    6 * 2^-9       E4M3 nearest of amax / 6           E2M1, packed
//
// Values are divided by the scale (a true division), clamped and rounded to nearest even. Nothing
// allocates; spans must match: a whole number of groups.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "numerics/e8m0.h"

namespace locket::numerics {

inline constexpr std::size_t kFp8GroupSize = 32;
inline constexpr std::size_t kFp4IndexGroupSize = 32;
inline constexpr std::size_t kFp4MainGroupSize = 16;

// values [n] -> codes [n] E4M3, scales [n / 32] E8M0.
void quantize_fp8(std::span<const float> values, std::span<std::uint8_t> codes,
                  std::span<std::uint8_t> scales);
void dequantize_fp8(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                    std::span<float> values);

// One group of any length by the rule of fp8; earlier generations have groups of 64 and 128.
E8m0 quantize_fp8_group(std::span<const float> values, std::span<std::uint8_t> codes);
void dequantize_fp8_group(std::span<const std::uint8_t> codes, E8m0 scale, std::span<float> values);

// values [n] -> codes [n / 2] E2M1 packed, scales [n / 32] E8M0.
void quantize_fp4_index(std::span<const float> values, std::span<std::uint8_t> codes,
                        std::span<std::uint8_t> scales);
void dequantize_fp4_index(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                          std::span<float> values);

// values [n] -> codes [n / 2] E2M1 packed, scales [n / 16] E4M3.
void quantize_fp4_main(std::span<const float> values, std::span<std::uint8_t> codes,
                       std::span<std::uint8_t> scales);
void dequantize_fp4_main(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                         std::span<float> values);

// In place: every value becomes what quantize and dequantize would give ("fake quantizer").
void fake_quantize_fp8(std::span<float> values);
void fake_quantize_fp4_index(std::span<float> values);

}  // namespace locket::numerics
