// Joint attention of the four heads over a window of 32 tokens and over rows made of older tokens,
// which are keys and values at once. Tokens come in blocks of one window: 32 tokens x 4 heads are
// 128 lines of scores over 64 window keys and some rows.
#include <stdlib.h>

#include "common.h"

#define LINES (WINDOW * HEADS)
#define NEAR (2 * WINDOW)
#define SCALE 0.125f  // HEAD_DIM to the power -1/2

void pack_forward(long n, long k, const float* w, float* out);

// What one call works on. All or chosen rows: with `chosen` [batch, queries, 32] (row ids, -1 at
// the end) a token reads only those.
typedef struct {
  long batch, queries, segment, rows;
  const float *q, *k, *global, *sink;
  const int32_t *visible, *chosen;
} Input;

// Buffers of one block. `line` is the stride of a score line: 64 window keys, then the rows.
typedef struct {
  long line, near_count;  // window keys that are there: the block's own, and those before it in its
                          // segment
  const float* near;      // [near_count, 64]
  float *near_packed, *packed;     // transposed in panels: window keys; all rows of the sequence
  float *scores, *slopes, *taken;  // taken: chosen rows of every token of the block [32, 32, 64]
} Block;

static Block new_block(const Input* in, int with_slopes) {
  long wide = in->chosen ? TOP_ROWS : (in->rows + PANEL - 1) / PANEL * PANEL;
  Block b = {.line = NEAR + wide};
  b.near_packed = aligned_alloc(64, sizeof(float) * NEAR * HEAD_DIM);
  b.packed = aligned_alloc(64, sizeof(float) * (wide + PANEL) * HEAD_DIM);
  b.scores = aligned_alloc(64, sizeof(float) * LINES * b.line);
  b.slopes = with_slopes ? aligned_alloc(64, sizeof(float) * LINES * b.line) : NULL;
  b.taken = aligned_alloc(64, sizeof(float) * (in->chosen ? WINDOW * TOP_ROWS * HEAD_DIM : 16));
  return b;
}

static void free_block(Block* b) {
  free(b->near_packed);
  free(b->packed);
  free(b->scores);
  free(b->slopes);
  free(b->taken);
}

static void enter_block(const Input* in, Block* b, long first) {
  long before = first % in->queries % in->segment ? WINDOW : 0;
  b->near_count = WINDOW + before;
  b->near = in->k + (first - before) * HEAD_DIM;
  pack_forward(b->near_count, HEAD_DIM, b->near, b->near_packed);
  if (!in->chosen) return;
  const float* global = in->global + first / in->queries * in->rows * HEAD_DIM;
  for (long i = 0; i < WINDOW * TOP_ROWS; i++) {
    long row = in->chosen[first * TOP_ROWS + i];
    if (row < 0)
      memset(b->taken + i * HEAD_DIM, 0, HEAD_DIM * sizeof(float));
    else
      memcpy(b->taken + i * HEAD_DIM, global + row * HEAD_DIM, HEAD_DIM * sizeof(float));
  }
}

static long seen_rows(const Input* in, long first) {
  return in->rows && !in->chosen ? in->visible[first + WINDOW - 1] : 0;
}

static inline float dot(const float* a, const float* b) {
  Vec sum = {0};
  for (int i = 0; i < HEAD_DIM; i += 16) sum += *(const Vec*)(a + i) * *(const Vec*)(b + i);
  float total = 0;
  for (int i = 0; i < 16; i++) total += sum[i];
  return total;
}

// out [128, line] = lines of x [128, 64] times window keys and rows.
static void multiply_keys(const Input* in, const Block* b, long first, const float* x, float* out) {
  gemm(LINES, b->near_count, HEAD_DIM, x, HEAD_DIM, b->near_packed, PANEL, HEAD_DIM * PANEL, out,
       b->line, 0);
  long seen = seen_rows(in, first);
  if (seen)
    gemm(LINES, seen, HEAD_DIM, x, HEAD_DIM, b->packed, PANEL, HEAD_DIM * PANEL, out + NEAR,
         b->line, 0);
  if (!in->chosen) return;
  for (long i = 0; i < LINES; i++)
    for (long j = 0; j < TOP_ROWS; j++)
      out[i * b->line + NEAR + j] =
          dot(x + i * HEAD_DIM, b->taken + (i / HEADS * TOP_ROWS + j) * HEAD_DIM);
}

// out [128, 64] = weights [128, line] times window keys and rows.
static void mix_keys(const Input* in, const Block* b, long first, const float* weights,
                     float* out) {
  gemm(LINES, HEAD_DIM, b->near_count, weights, b->line, b->near, HEAD_DIM, PANEL, out, HEAD_DIM,
       0);
  long seen = seen_rows(in, first);
  const float* global = in->global + first / in->queries * in->rows * HEAD_DIM;
  if (seen)
    gemm(LINES, HEAD_DIM, seen, weights + NEAR, b->line, global, HEAD_DIM, PANEL, out, HEAD_DIM, 1);
  if (!in->chosen) return;
  for (long i = 0; i < WINDOW; i++)
    gemm(HEADS, HEAD_DIM, TOP_ROWS, weights + i * HEADS * b->line + NEAR, b->line,
         b->taken + i * TOP_ROWS * HEAD_DIM, HEAD_DIM, PANEL, out + i * HEADS * HEAD_DIM, HEAD_DIM,
         1);
}

// The columns that line i of a block reads: window [low, high), rows [64, end).
static void span(const Input* in, const Block* b, long first, long token, long* low, long* high,
                 long* end) {
  *high = b->near_count - WINDOW + token + 1;
  *low = *high > WINDOW ? *high - WINDOW : 0;
  *end = NEAR;
  if (in->chosen) {
    const int32_t* list = in->chosen + (first + token) * TOP_ROWS;
    while (*end < NEAR + TOP_ROWS && list[*end - NEAR] >= 0) ++*end;
  } else if (in->rows) {
    *end += in->visible[first + token];
  }
}

// Scores become probabilities exp(score - lse); everything else in the line becomes zero.
static void to_probabilities(const Input* in, const Block* b, long first, float* lse, int known) {
  for (long token = 0; token < WINDOW; token++) {
    long low, high, end,
        width = NEAR + (in->chosen ? TOP_ROWS : (seen_rows(in, first) + PANEL - 1) / PANEL * PANEL);
    span(in, b, first, token, &low, &high, &end);
    for (long h = 0; h < HEADS; h++) {
      float *s = b->scores + (token * HEADS + h) * b->line,
            *total = lse + (first + token) * HEADS + h;
      if (!known) {
        float most = in->sink[h], sum = 0;
        for (long j = low; j < high; j++) most = fmaxf(most, s[j] * SCALE);
        for (long j = NEAR; j < end; j++) most = fmaxf(most, s[j] * SCALE);
        for (long j = low; j < high; j++) sum += expf(s[j] * SCALE - most);
        for (long j = NEAR; j < end; j++) sum += expf(s[j] * SCALE - most);
        *total = most + logf(sum + expf(in->sink[h] - most));
      }
      for (long j = 0; j < low; j++) s[j] = 0;
      for (long j = low; j < high; j++) s[j] = expf(s[j] * SCALE - *total);
      for (long j = high; j < NEAR; j++) s[j] = 0;
      for (long j = NEAR; j < end; j++) s[j] = expf(s[j] * SCALE - *total);
      for (long j = end; j < width; j++) s[j] = 0;
    }
  }
}

// out [batch, queries, 4, 64]; lse: logarithm of the sum of all exponentials, that of the sink
// included.
void attend(long batch, long queries, long segment, long rows, const float* q, const float* k,
            const float* global, const float* sink, const int32_t* visible, const int32_t* chosen,
            float* out, float* lse) {
  Input in = {batch, queries, segment, rows, q, k, global, sink, visible, chosen};
  Block b = new_block(&in, 0);
  for (long first = 0; first < batch * queries; first += WINDOW) {
    if (rows && !chosen && first % queries == 0)
      pack_forward(rows, HEAD_DIM, global + first / queries * rows * HEAD_DIM, b.packed);
    enter_block(&in, &b, first);
    multiply_keys(&in, &b, first, q + first * Q_WIDTH, b.scores);
    to_probabilities(&in, &b, first, lse, 0);
    mix_keys(&in, &b, first, b.scores, out + first * Q_WIDTH);
  }
  free_block(&b);
}

// keys^T of one block: dk += weights^T x for window keys and rows.
static void spread(const Input* in, const Block* b, long first, const float* weights,
                   const float* x, float* dk, float* dglobal) {
  gemm_transposed(b->near_count, HEAD_DIM, LINES, weights, b->line, x, HEAD_DIM,
                  dk + (b->near - in->k), HEAD_DIM);
  long seen = seen_rows(in, first), base = first / in->queries * in->rows;
  if (seen)
    gemm_transposed(seen, HEAD_DIM, LINES, weights + NEAR, b->line, x, HEAD_DIM,
                    dglobal + base * HEAD_DIM, HEAD_DIM);
  if (!in->chosen) return;
  for (long i = 0; i < WINDOW * TOP_ROWS; i++) {
    long row = in->chosen[first * TOP_ROWS + i], token = i / TOP_ROWS;
    if (row < 0) continue;
    float* to = dglobal + (base + row) * HEAD_DIM;
    for (long h = 0; h < HEADS; h++) {
      float weight = weights[(token * HEADS + h) * b->line + NEAR + i % TOP_ROWS];
      const float* from = x + (token * HEADS + h) * HEAD_DIM;
      for (int c = 0; c < HEAD_DIM; c++) to[c] += weight * from[c];
    }
  }
}

// dk and dglobal are added to; dglobal may be null if there are no rows.
void attend_back(long batch, long queries, long segment, long rows, const float* q, const float* k,
                 const float* global, const float* sink, const int32_t* visible,
                 const int32_t* chosen, const float* out, float* lse, const float* dout, float* dq,
                 float* dk, float* dglobal, float* dsink) {
  Input in = {batch, queries, segment, rows, q, k, global, sink, visible, chosen};
  Block b = new_block(&in, 1);
  for (long first = 0; first < batch * queries; first += WINDOW) {
    if (rows && !chosen && first % queries == 0)
      pack_forward(rows, HEAD_DIM, global + first / queries * rows * HEAD_DIM, b.packed);
    enter_block(&in, &b, first);
    const float *query = q + first * Q_WIDTH, *slope = dout + first * Q_WIDTH;
    multiply_keys(&in, &b, first, query, b.scores);
    to_probabilities(&in, &b, first, lse, 1);
    spread(&in, &b, first, b.scores, slope, dk, dglobal);
    multiply_keys(&in, &b, first, slope, b.slopes);
    long seen = seen_rows(&in, first),
         width = NEAR + (chosen ? TOP_ROWS : (seen + PANEL - 1) / PANEL * PANEL);
    for (long i = 0; i < LINES; i++) {
      float *p = b.scores + i * b.line, *d = b.slopes + i * b.line;
      float mean = dot(slope + i * HEAD_DIM, out + first * Q_WIDTH + i * HEAD_DIM);
      dsink[i % HEADS] -= expf(sink[i % HEADS] - lse[first * HEADS + i]) * mean;
      for (long j = 0; j < b.near_count; j++) p[j] *= (d[j] - mean) * SCALE;
      for (long j = NEAR; j < width; j++) p[j] *= (d[j] - mean) * SCALE;
    }
    mix_keys(&in, &b, first, b.scores, dq + first * Q_WIDTH);
    spread(&in, &b, first, b.scores, query, dk, dglobal);
  }
  free_block(&b);
}

// mass [count, rows] += probability of every row, summed over heads, for the tokens `take` (flat
// indices) of one call of `attend`.
void attention_mass(long queries, long rows, const float* q, const float* global,
                    const int32_t* visible, const float* lse, long count, const int32_t* take,
                    float* mass) {
  long padded = (rows + PANEL - 1) / PANEL * PANEL, packed_for = -1;
  float *packed = aligned_alloc(64, sizeof(float) * padded * HEAD_DIM),
        *scores = aligned_alloc(64, sizeof(float) * HEADS * padded);
  for (long i = 0; i < count; i++) {
    long token = take[i], sequence = token / queries, seen = visible[token];
    if (sequence != packed_for)
      pack_forward(rows, HEAD_DIM, global + sequence * rows * HEAD_DIM, packed);
    packed_for = sequence;
    gemm(HEADS, seen, HEAD_DIM, q + token * Q_WIDTH, HEAD_DIM, packed, PANEL, HEAD_DIM * PANEL,
         scores, padded, 0);
    for (long h = 0; h < HEADS; h++)
      for (long j = 0; j < seen; j++)
        mass[i * rows + j] += expf(scores[h * padded + j] * SCALE - lse[token * HEADS + h]);
  }
  free(packed);
  free(scores);
}
