// Index scores, the choice of rows, the candidate pool, and the gradient that teaches the scores.
#include <stdlib.h>

#include "common.h"

#define INDEX_WIDTH (INDEX_HEADS * INDEX_DIM)
#define LINES (WINDOW * INDEX_HEADS)

void pack_forward(long n, long k, const float* w, float* out);

static long padded(long n) { return (n + PANEL - 1) / PANEL * PANEL; }

// Floats as integers in the same order.
static inline int32_t ordered(float f) {
  int32_t i = (int32_t)to_bits(f);
  return i ^ ((i >> 31) & 0x7fffffff);
}

// The largest value that at least `want` of the n keys reach, or one with exactly `want`; found bit
// by bit from the top.
static int32_t threshold(long n, const int32_t* keys, long want) {
  int64_t low = INT32_MIN,
          high = (int64_t)INT32_MAX + 1;  // at least `want` keys reach low, fewer reach high
  while (high - low > 1) {
    int64_t middle = low + (high - low) / 2;
    int32_t bound = (int32_t)middle;
    int32_t count = 0;
    for (long i = 0; i < n; i++) count += keys[i] >= bound;
    if (count >= want)
      low = middle;
    else
      high = middle;
    if (count == want) break;
  }
  return (int32_t)low;
}

// The `want` largest of n scores, ascending; of equal ones those with the lower index. Unused
// places are -1.
static void best(long n, const float* score, int32_t* keys, long want, int32_t* out) {
  long found = 0, above = 0;
  if (n <= want) {
    for (; found < n; found++) out[found] = found;
  } else {
    for (long i = 0; i < n; i++) keys[i] = ordered(score[i]);
    int32_t bound = threshold(n, keys, want);
    for (long i = 0; i < n; i++) above += keys[i] > bound;
    long ties = want - above;
    for (long i = 0; i < n && found < want; i++)
      if (keys[i] > bound || (keys[i] == bound && ties-- > 0)) out[found++] = i;
  }
  for (; found < want; found++) out[found] = -1;
}

// scores [n] of one token from its dots [4, line].
static void combine(long n, const float* dots, long line, const float* weight, float* scores) {
  for (long r = 0; r < n; r++) {
    float sum = weight[0] * fmaxf(dots[r], 0);
    for (int h = 1; h < INDEX_HEADS; h++) sum += weight[h] * fmaxf(dots[h * line + r], 0);
    scores[r] = sum;
  }
}

// The blocks of eight rows with the best rows; the last visible one always belongs to them.
static void choose_pool(long seen, const float* scores, int32_t* keys, int32_t* blocks) {
  long count = (seen + POOL_BLOCK - 1) / POOL_BLOCK;
  float score[count + 1];
  for (long b = 0; b < count; b++) {
    score[b] = scores[b * POOL_BLOCK];
    for (long i = b * POOL_BLOCK; i < least(seen, (b + 1) * POOL_BLOCK); i++)
      score[b] = fmaxf(score[b], scores[i]);
  }
  if (count) score[count - 1] = 3e38f;
  best(count, score, keys, POOL_BLOCKS, blocks);
}

static void choose_in_pool(const float* q, const float* weight, const float* keys, long seen,
                           const int32_t* blocks, int32_t* chosen) {
  float near[POOL_BLOCKS * POOL_BLOCK * INDEX_DIM], packed[POOL_BLOCKS * POOL_BLOCK * INDEX_DIM];
  float dots[INDEX_HEADS * POOL_BLOCKS * POOL_BLOCK], scores[POOL_BLOCKS * POOL_BLOCK];
  int32_t where[POOL_BLOCKS * POOL_BLOCK], sortable[POOL_BLOCKS * POOL_BLOCK], picked[TOP_ROWS];
  long n = 0;
  for (long b = 0; b < POOL_BLOCKS && blocks[b] >= 0; b++)
    for (long r = blocks[b] * POOL_BLOCK; r < least(seen, (blocks[b] + 1) * POOL_BLOCK); r++) {
      memcpy(near + n * INDEX_DIM, keys + r * INDEX_DIM, INDEX_DIM * sizeof(float));
      where[n++] = r;
    }
  pack_forward(n, INDEX_DIM, near, packed);
  gemm(INDEX_HEADS, n, INDEX_DIM, q, INDEX_DIM, packed, PANEL, INDEX_DIM * PANEL, dots,
       POOL_BLOCKS * POOL_BLOCK, 0);
  combine(n, dots, POOL_BLOCKS * POOL_BLOCK, weight, scores);
  best(n, scores, sortable, TOP_ROWS, picked);
  for (int i = 0; i < TOP_ROWS; i++) chosen[i] = picked[i] < 0 ? -1 : where[picked[i]];
}

// chosen [batch, queries, 32] from q [batch, queries, 4, 32], weight [.., 32] (four used) and keys
// [batch, rows, 32]. pool [.., 16]: made (make_pool), obeyed, or null.
void choose_rows(long batch, long queries, long rows, const float* q, const float* weight,
                 const float* keys, const int32_t* visible, long make_pool, int32_t* pool,
                 int32_t* chosen) {
  long line = padded(rows);
  float *packed = aligned_alloc(64, sizeof(float) * line * INDEX_DIM),
        *dots = aligned_alloc(64, sizeof(float) * LINES * line);
  float* scores = aligned_alloc(64, sizeof(float) * line);
  int32_t* sortable = aligned_alloc(64, sizeof(int32_t) * line);
  for (long t = 0; t < batch * queries; t++) {
    long sequence = t / queries, i = t % queries % WINDOW, seen = visible[t];
    const float* w = weight + t * PANEL;
    if (pool && !make_pool) {
      choose_in_pool(q + t * INDEX_WIDTH, w, keys + sequence * rows * INDEX_DIM, seen,
                     pool + t * POOL_BLOCKS, chosen + t * TOP_ROWS);
      continue;
    }
    if (t % queries == 0) pack_forward(rows, INDEX_DIM, keys + sequence * rows * INDEX_DIM, packed);
    if (i == 0)
      gemm(LINES, visible[t + WINDOW - 1], INDEX_DIM, q + t * INDEX_WIDTH, INDEX_DIM, packed, PANEL,
           INDEX_DIM * PANEL, dots, line, 0);
    combine(seen, dots + i * INDEX_HEADS * line, line, w, scores);
    best(seen, scores, sortable, TOP_ROWS, chosen + t * TOP_ROWS);
    if (pool) choose_pool(seen, scores, sortable, pool + t * POOL_BLOCKS);
  }
  free(packed);
  free(dots);
  free(scores);
  free(sortable);
}

// Cross entropy between where attention looked (mass [count, rows], not normalised) and the softmax
// of the scores, for the tokens `take`; divided by count. Returns the sum of losses, the entropy of
// the mass taken off, so that 0 is perfect.
float index_loss(long queries, long rows, const float* q, const float* weight, const float* keys,
                 const int32_t* visible, long count, const int32_t* take, const float* mass,
                 float* dq, float* dweight, float* dkeys) {
  long line = padded(rows);
  float *packed = aligned_alloc(64, sizeof(float) * line * INDEX_DIM),
        *dots = aligned_alloc(64, sizeof(float) * INDEX_HEADS * line);
  float *scores = aligned_alloc(64, sizeof(float) * line), loss = 0;
  long packed_for = -1;
  for (long i = 0; i < count; i++) {
    long t = take[i], sequence = t / queries, seen = visible[t];
    const float *key = keys + sequence * rows * INDEX_DIM, *w = weight + t * PANEL,
                *m = mass + i * rows;
    float total = 0, most = -1e30f, sum = 0;
    for (long r = 0; r < seen; r++) total += m[r];
    if (seen < 2 || total < 1e-6f) continue;
    if (sequence != packed_for) pack_forward(rows, INDEX_DIM, key, packed);
    packed_for = sequence;
    gemm(INDEX_HEADS, seen, INDEX_DIM, q + t * INDEX_WIDTH, INDEX_DIM, packed, PANEL,
         INDEX_DIM * PANEL, dots, line, 0);
    combine(seen, dots, line, w, scores);
    for (long r = 0; r < seen; r++) most = fmaxf(most, scores[r]);
    for (long r = 0; r < seen; r++) sum += expf(scores[r] - most);
    float log_sum = most + logf(sum), part = 0;
    for (long r = 0; r < seen; r++) {
      float p = m[r] / total, s = scores[r];
      part += p * (logf(p + 1e-9f) - s + log_sum);
      scores[r] = (expf(s - log_sum) - p) / count;
    }
    loss += part / count;
    for (int h = 0; h < INDEX_HEADS; h++) {
      float *d = dots + h * line, slope = 0;
      for (long r = 0; r < seen; r++) {
        slope += scores[r] * fmaxf(d[r], 0);
        d[r] = d[r] > 0 ? scores[r] * w[h] : 0;
      }
      dweight[t * PANEL + h] += slope;
    }
    gemm(INDEX_HEADS, INDEX_DIM, seen, dots, line, key, INDEX_DIM, PANEL, dq + t * INDEX_WIDTH,
         INDEX_DIM, 1);
    gemm_transposed(seen, INDEX_DIM, INDEX_HEADS, dots, line, q + t * INDEX_WIDTH, INDEX_DIM,
                    dkeys + sequence * rows * INDEX_DIM, INDEX_DIM);
  }
  free(packed);
  free(dots);
  free(scores);
  return loss;
}
