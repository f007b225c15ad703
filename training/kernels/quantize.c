// Fake quantizers: values as the format would keep them.
#include "common.h"

static inline float power_up(float x) {  // smallest power of two that is not below x
  uint32_t b = to_bits(x);
  return from_bits(((b >> 23) + ((b & 0x7fffff) != 0)) << 23);
}

static inline float grid(float x, int low_exponent, int mantissa_bits) {
  int e = (to_bits(x) >> 23) & 255, low = 127 + low_exponent;
  e = (e > low ? e : low) - mantissa_bits;
  return rintf(x * from_bits((uint32_t)(254 - e) << 23)) * from_bits((uint32_t)e << 23);
}

static inline float clamp(float x, float m) { return fminf(fmaxf(x, -m), m); }

static inline float absmax(long n, const float* x) {
  float m = 0;
  for (long i = 0; i < n; i++) m = fmaxf(m, fabsf(x[i]));
  return m;
}

void fp8_rows(long blocks, const float* x, float* out) {  // e4m3, one power-of-two scale per 32
  for (long b = 0; b < blocks; b++, x += 32, out += 32) {
    float s = power_up(fmaxf(absmax(32, x), 1e-4f) * (1.0f / 448)), inverse = 1 / s;
    for (int i = 0; i < 32; i++) out[i] = grid(clamp(x[i] * inverse, 448), -6, 3) * s;
  }
}

void fp4_rows(long blocks, const float* x, float* out) {  // e2m1, one power-of-two scale per 32
  for (long b = 0; b < blocks; b++, x += 32, out += 32) {
    float s = power_up(fmaxf(absmax(32, x), 6 * 1.1754944e-38f) * (1.0f / 6)), inverse = 1 / s;
    for (int i = 0; i < 32; i++) out[i] = grid(clamp(x[i] * inverse, 6), 0, 1) * s;
  }
}

void fp4_main_rows(long blocks, const float* x, float* out) {  // e2m1, one e4m3 scale per 16
  for (long b = 0; b < blocks; b++, x += 16, out += 16) {
    float s = grid(fmaxf(absmax(16, x), 6 * 0.001953125f) / 6, -6, 3);
    for (int i = 0; i < 16; i++) out[i] = grid(clamp(x[i] / s, 6), 0, 1) * s;
  }
}

void fp8_tiles(long rows, long columns, const float* x,
               float* out) {  // e4m3, one power-of-two scale per 32 x 32
  for (long r = 0; r < rows; r += 32)
    for (long c = 0; c < columns; c += 32) {
      float m = 0;
      for (long i = r; i < r + 32; i++) m = fmaxf(m, absmax(32, x + i * columns + c));
      float s = power_up(fmaxf(m, 1e-4f) * (1.0f / 448)), inverse = 1 / s;
      for (long i = r; i < r + 32; i++)
        for (long j = c; j < c + 32; j++)
          out[i * columns + j] = grid(clamp(x[i * columns + j] * inverse, 448), -6, 3) * s;
    }
}

void bf16_rows(long n, const float* x, float* out) {  // round to nearest, ties to even
  for (long i = 0; i < n; i++) {
    uint32_t b = to_bits(x[i]);
    out[i] = from_bits((b + 0x7fff + ((b >> 16) & 1)) & 0xffff0000u);
  }
}
