#include "numerics/group_scaled.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "numerics/e8m0.h"
#include "numerics/fp4_e2m1.h"
#include "numerics/fp8_e4m3.h"

namespace locket::numerics {
namespace {

float largest_magnitude(std::span<const float> group, float floor) {
  float largest = floor;
  for (const float value : group) largest = std::max(largest, std::fabs(value));
  return largest;
}

E8m0 fp8_scale(std::span<const float> group) {
  return round_up_to_e8m0(largest_magnitude(group, 1e-4f) * (1.0f / 448.0f));
}

E8m0 fp4_index_scale(std::span<const float> group) {
  return round_up_to_e8m0(largest_magnitude(group, 6.0f * 0x1p-126f) * (1.0f / 6.0f));
}

Fp8E4m3 fp4_main_scale(std::span<const float> group) {
  return to_fp8_e4m3(largest_magnitude(group, 6.0f * 0x1p-9f) / 6.0f);
}

Fp8E4m3 fp8_code(float value, float scale) {
  return to_fp8_e4m3(std::clamp(value / scale, -kFp8E4m3Max, kFp8E4m3Max));
}

Fp4E2m1 fp4_code(float value, float scale) {
  return to_fp4_e2m1(std::clamp(value / scale, -kFp4E2m1Max, kFp4E2m1Max));
}

void pack_group(std::span<const float> group, float scale, std::uint8_t* codes) {
  for (std::size_t i = 0; i < group.size(); i += 2) {
    codes[i / 2] = pack_fp4(fp4_code(group[i], scale), fp4_code(group[i + 1], scale));
  }
}

// The two values of every byte of codes.
constexpr auto kFp4Pairs = [] {
  std::array<std::array<float, 2>, 256> pairs{};
  for (unsigned byte = 0; byte < pairs.size(); ++byte) {
    const auto codes = static_cast<std::uint8_t>(byte);
    pairs[byte] = {to_float(even_fp4(codes)), to_float(odd_fp4(codes))};
  }
  return pairs;
}();

void unpack_group(const std::uint8_t* codes, float scale, std::span<float> group) {
  for (std::size_t i = 0; i < group.size(); i += 2) {
    const std::array<float, 2>& pair = kFp4Pairs[codes[i / 2]];
    group[i] = pair[0] * scale;
    group[i + 1] = pair[1] * scale;
  }
}

}  // namespace

E8m0 quantize_fp8_group(std::span<const float> values, std::span<std::uint8_t> codes) {
  LOCKET_DCHECK(codes.size() == values.size());
  const E8m0 scale = fp8_scale(values);
  for (std::size_t i = 0; i < values.size(); ++i) {
    codes[i] = fp8_code(values[i], to_float(scale)).code;
  }
  return scale;
}

void dequantize_fp8_group(std::span<const std::uint8_t> codes, E8m0 scale,
                          std::span<float> values) {
  LOCKET_DCHECK(codes.size() == values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = kFp8E4m3Values[codes[i]] * to_float(scale);
  }
}

void quantize_fp8(std::span<const float> values, std::span<std::uint8_t> codes,
                  std::span<std::uint8_t> scales) {
  LOCKET_DCHECK(codes.size() == values.size());
  LOCKET_DCHECK(scales.size() * kFp8GroupSize == values.size());
  for (std::size_t group = 0; group < scales.size(); ++group) {
    const std::size_t first = group * kFp8GroupSize;
    scales[group] = quantize_fp8_group(values.subspan(first, kFp8GroupSize),
                                       codes.subspan(first, kFp8GroupSize))
                        .code;
  }
}

void dequantize_fp8(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                    std::span<float> values) {
  LOCKET_DCHECK(codes.size() == values.size());
  LOCKET_DCHECK(scales.size() * kFp8GroupSize == values.size());
  for (std::size_t group = 0; group < scales.size(); ++group) {
    const std::size_t first = group * kFp8GroupSize;
    dequantize_fp8_group(codes.subspan(first, kFp8GroupSize), E8m0{scales[group]},
                         values.subspan(first, kFp8GroupSize));
  }
}

void quantize_fp4_index(std::span<const float> values, std::span<std::uint8_t> codes,
                        std::span<std::uint8_t> scales) {
  LOCKET_DCHECK(codes.size() * 2 == values.size());
  LOCKET_DCHECK(scales.size() * kFp4IndexGroupSize == values.size());
  for (std::size_t group = 0; group < scales.size(); ++group) {
    const auto part = values.subspan(group * kFp4IndexGroupSize, kFp4IndexGroupSize);
    const E8m0 scale = fp4_index_scale(part);
    scales[group] = scale.code;
    pack_group(part, to_float(scale), codes.data() + group * kFp4IndexGroupSize / 2);
  }
}

void dequantize_fp4_index(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                          std::span<float> values) {
  LOCKET_DCHECK(codes.size() * 2 == values.size());
  LOCKET_DCHECK(scales.size() * kFp4IndexGroupSize == values.size());
  for (std::size_t group = 0; group < scales.size(); ++group) {
    unpack_group(codes.data() + group * kFp4IndexGroupSize / 2, to_float(E8m0{scales[group]}),
                 values.subspan(group * kFp4IndexGroupSize, kFp4IndexGroupSize));
  }
}

void quantize_fp4_main(std::span<const float> values, std::span<std::uint8_t> codes,
                       std::span<std::uint8_t> scales) {
  LOCKET_DCHECK(codes.size() * 2 == values.size());
  LOCKET_DCHECK(scales.size() * kFp4MainGroupSize == values.size());
  for (std::size_t group = 0; group < scales.size(); ++group) {
    const auto part = values.subspan(group * kFp4MainGroupSize, kFp4MainGroupSize);
    const Fp8E4m3 scale = fp4_main_scale(part);
    scales[group] = scale.code;
    pack_group(part, to_float(scale), codes.data() + group * kFp4MainGroupSize / 2);
  }
}

void dequantize_fp4_main(std::span<const std::uint8_t> codes, std::span<const std::uint8_t> scales,
                         std::span<float> values) {
  LOCKET_DCHECK(codes.size() * 2 == values.size());
  LOCKET_DCHECK(scales.size() * kFp4MainGroupSize == values.size());
  for (std::size_t group = 0; group < scales.size(); ++group) {
    unpack_group(codes.data() + group * kFp4MainGroupSize / 2, to_float(Fp8E4m3{scales[group]}),
                 values.subspan(group * kFp4MainGroupSize, kFp4MainGroupSize));
  }
}

void fake_quantize_fp8(std::span<float> values) {
  LOCKET_DCHECK(values.size() % kFp8GroupSize == 0);
  for (std::size_t at = 0; at < values.size(); at += kFp8GroupSize) {
    const auto part = values.subspan(at, kFp8GroupSize);
    const float scale = to_float(fp8_scale(part));
    for (float& value : part) value = to_float(fp8_code(value, scale)) * scale;
  }
}

void fake_quantize_fp4_index(std::span<float> values) {
  LOCKET_DCHECK(values.size() % kFp4IndexGroupSize == 0);
  for (std::size_t at = 0; at < values.size(); at += kFp4IndexGroupSize) {
    const auto part = values.subspan(at, kFp4IndexGroupSize);
    const float scale = to_float(fp4_index_scale(part));
    for (float& value : part) value = to_float(fp4_code(value, scale)) * scale;
  }
}

}  // namespace locket::numerics
