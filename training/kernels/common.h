// Shared by all kernels. Arrays are float32, row-major and contiguous unless a stride is given. The
// widths are those of config.py; they are constants here so that the compiler unrolls and
// vectorises.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#define HIDDEN 128
#define STREAMS 4
#define FLAT (HIDDEN * STREAMS)
#define MIXES 24  // pre, post and comb of a site
#define HEADS 4
#define HEAD_DIM 64
#define ROTARY 16
#define Q_RANK 96
#define Q_WIDTH (HEADS * HEAD_DIM)
#define O_GROUPS 2
#define O_RANK 64
#define WINDOW 32
#define EXPERTS 8
#define TOP_EXPERTS 2
#define EXPERT_WIDTH 96
#define INDEX_HEADS 4
#define INDEX_DIM 32
#define TOP_ROWS 32
#define POOL_BLOCKS 16
#define POOL_BLOCK 8
#define VOCABULARY 1536
#define PANEL 32  // columns of a packed panel; every width is padded to a multiple of it

typedef float Vec __attribute__((vector_size(64), aligned(4), may_alias));

static inline float from_bits(uint32_t b) {
  float f;
  memcpy(&f, &b, 4);
  return f;
}
static inline uint32_t to_bits(float f) {
  uint32_t b;
  memcpy(&b, &f, 4);
  return b;
}
static inline long least(long a, long b) { return a < b ? a : b; }

// C [m, n] = A [m, k] B (+ C). B comes in panels of 32 columns: element (k, 32 j + i) is b[j *
// panel + k * step + i]. A packed weight has step 32; a plain row-major matrix has panel 32 and
// step = its row length.
void gemm(long m, long n, long k, const float* a, long lda, const float* b, long step, long panel,
          float* c, long ldc, int add);
// C [m, n] += A^T B for A [k, m] and B [k, n].
void gemm_transposed(long m, long n, long k, const float* a, long lda, const float* b, long ldb,
                     float* c, long ldc);

void rotate(const float* cosine, const float* sine, float sign, float* x);
void fp8_rows(long blocks, const float* x, float* out);
void fp4_rows(long blocks, const float* x, float* out);
void fp4_main_rows(long blocks, const float* x, float* out);
