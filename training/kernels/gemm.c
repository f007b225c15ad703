// Matrix products of one thread. The widths of this model are small, so weights are packed once a
// step and activations are read in place.
#include "common.h"

#define TILE \
  14  // rows of a tile: 14 x 2 accumulators, two columns of B and a broadcast fill the 32 vector
      // registers
#define DEPTH 256

#define INLINE static inline __attribute__((always_inline))

// Element (i, k) of A is a[i * row + k * depth]; `rows` is a constant in every caller.
INLINE void tile(const int rows, long k, const float* a, long row, long depth, const float* b,
                 long step, float* c, long ldc, int add) {
  Vec sum[TILE][2];
#pragma GCC unroll 14
  for (int i = 0; i < rows; i++) sum[i][0] = sum[i][1] = (Vec){0};
  for (long at = 0; at < k; at++, a += depth, b += step) {
    Vec left = *(const Vec*)b, right = *(const Vec*)(b + 16);
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
      sum[i][0] += a[i * row] * left;
      sum[i][1] += a[i * row] * right;
    }
  }
#pragma GCC unroll 14
  for (int i = 0; i < rows; i++) {
    for (int half = 0; half < 2; half++) {
      Vec* p = (Vec*)(c + i * ldc + 16 * half);
      if (add) sum[i][half] += *p;
      *p = sum[i][half];
    }
  }
}

INLINE void any_tile(long rows, long k, const float* a, long row, long depth, const float* b,
                     long step, float* c, long ldc, int add) {
#define CASE(n)                                      \
  case n:                                            \
    tile(n, k, a, row, depth, b, step, c, ldc, add); \
    break;
  switch (rows) {
    CASE(1)
    CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11) CASE(12)
        CASE(13) CASE(14)
  }
#undef CASE
}

void gemm(long m, long n, long k, const float* a, long lda, const float* b, long step, long panel,
          float* c, long ldc, int add) {
  for (long m0 = 0; m0 < m; m0 += 16 * TILE)
    for (long j = 0; j * PANEL < n; j++)
      for (long i = m0; i < least(m, m0 + 16 * TILE); i += TILE)
        any_tile(least(TILE, m - i), k, a + i * lda, lda, 1, b + j * panel, step,
                 c + i * ldc + j * PANEL, ldc, add);
}

void gemm_transposed(long m, long n, long k, const float* a, long lda, const float* b, long ldb,
                     float* c, long ldc) {
  // Columns of B are copied together: a stride of a power of two would use only a few sets of the
  // cache.
  static __thread float strip[DEPTH * PANEL] __attribute__((aligned(64)));
  for (long k0 = 0; k0 < k; k0 += DEPTH) {
    long depth = least(DEPTH, k - k0);
    for (long j = 0; j < n; j += PANEL) {
      for (long t = 0; t < depth; t++)
        memcpy(strip + t * PANEL, b + (k0 + t) * ldb + j, PANEL * sizeof(float));
      for (long i = 0; i < m; i += TILE)
        any_tile(least(TILE, m - i), depth, a + k0 * lda + i, 1, lda, strip, PANEL, c + i * ldc + j,
                 ldc, 1);
    }
  }
}

// ---- packing of a weight [n, k]
// -------------------------------------------------------------------------------------------------------

// For y = x W^T: panels of 32 outputs, padded with zeros.
void pack_forward(long n, long k, const float* w, float* out) {
  for (long j = 0; j < n; j += PANEL, out += k * PANEL)
    for (long i = 0; i < k; i++)
      for (long p = 0; p < PANEL; p++) out[i * PANEL + p] = j + p < n ? w[(j + p) * k + i] : 0;
}

// For dx = dy W: panels of 32 inputs.
void pack_backward(long n, long k, const float* w, float* out) {
  for (long j = 0; j < k; j += PANEL)
    for (long i = 0; i < n; i++, out += PANEL) memcpy(out, w + i * k + j, PANEL * sizeof(float));
}
