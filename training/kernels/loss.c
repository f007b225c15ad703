// Head and cross entropy together, so that logits never leave the cache; and the update of AdamW.
#include <stdlib.h>

#include "common.h"

#define CHUNK 56

// For the n tokens `take`: adds weight * loss to the sum that is returned, writes the likeliest
// token, the gradients of h and of the head. Without dh only the loss and the likeliest tokens are
// computed.
double cross_entropy(long n, const int32_t* take, const float* h, const float* head,
                     const float* head_back, const int32_t* wanted, const float* weight, float* dh,
                     float* dhead, int32_t* likeliest, float* losses) {
  static __thread float in[CHUNK * HIDDEN], logits[CHUNK * VOCABULARY], slope[CHUNK * HIDDEN];
  double total = 0;
  for (long t0 = 0; t0 < n; t0 += CHUNK) {
    long live = least(CHUNK, n - t0);
    for (long i = 0; i < live; i++)
      memcpy(in + i * HIDDEN, h + (long)take[t0 + i] * HIDDEN, HIDDEN * sizeof(float));
    gemm(live, VOCABULARY, HIDDEN, in, HIDDEN, head, PANEL, HIDDEN * PANEL, logits, VOCABULARY, 0);
    for (long i = 0; i < live; i++) {
      float *l = logits + i * VOCABULARY, most = -1e30f, sum = 0;
      long t = take[t0 + i], place = VOCABULARY;
      for (int c = 0; c < VOCABULARY; c++) most = fmaxf(most, l[c]);
      for (int c = VOCABULARY - 1; c >= 0; c--) place = l[c] == most ? c : place;
      float right = l[wanted[t]] - most;
      for (int c = 0; c < VOCABULARY; c++) {
        l[c] = expf(l[c] - most);
        sum += l[c];
      }
      likeliest[t] = place;
      losses[t] = logf(sum) - right;
      total += (double)weight[t] * losses[t];
      float factor = weight[t] / sum;
      for (int c = 0; c < VOCABULARY; c++) l[c] *= factor;
      l[wanted[t]] -= weight[t];
    }
    if (!dh) continue;
    gemm(live, HIDDEN, VOCABULARY, logits, VOCABULARY, head_back, PANEL, VOCABULARY * PANEL, slope,
         HIDDEN, 0);
    for (long i = 0; i < live; i++)
      memcpy(dh + (long)take[t0 + i] * HIDDEN, slope + i * HIDDEN, HIDDEN * sizeof(float));
    if (dhead)
      gemm_transposed(VOCABULARY, HIDDEN, live, logits, VOCABULARY, in, HIDDEN, dhead, HIDDEN);
  }
  return total;
}

// ---- optimizer
// ----------------------------------------------------------------------------------------------------------------------------

double square_sum(long n, const float* a, const float* b) {  // of a + b
  double total = 0;
  for (long i = 0; i < n; i++) total += (double)(a[i] + b[i]) * (a[i] + b[i]);
  return total;
}

// Gradient: (a + b) * factor. `first` and `second` are the corrections 1 - beta^step.
void adamw(long n, const float* a, const float* b, float factor, float rate, float decay,
           float beta1, float beta2, float first, float second, float* p, float* m, float* v) {
  for (long i = 0; i < n; i++) {
    float g = (a[i] + b[i]) * factor;
    m[i] += (1 - beta1) * (g - m[i]);
    v[i] += (1 - beta2) * (g * g - v[i]);
    p[i] = p[i] * (1 - rate * decay) - rate * (m[i] / first) / (sqrtf(v[i] / second) + 1e-8f);
  }
}

// Muon: momentum, then the nearest matrix with orthogonal rows or columns by five steps of Newton
// and Schulz. p [rows, columns].
void muon(long rows, long columns, const float* a, const float* b, float factor, float rate,
          float decay, float momentum, float* p, float* m) {
  long wide = rows < columns, r = wide ? rows : columns, c = wide ? columns : rows,
       n = rows * columns;
  float *x = aligned_alloc(64, sizeof(float) * n), *next = aligned_alloc(64, sizeof(float) * n);
  float *square = aligned_alloc(64, sizeof(float) * r * r),
        *mix = aligned_alloc(64, sizeof(float) * r * r);
  double norm = 0;
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < columns; j++) {
      long at = i * columns + j;
      float g = (a[at] + b[at]) * factor;
      m[at] = momentum * m[at] + g;
      float u = g + momentum * m[at];
      norm += (double)u * u;
      x[wide ? j * r + i : at] = u;  // tall: [c, r]
    }
  float inverse = 1.0f / (sqrt(norm) + 1e-7);
  for (long i = 0; i < n; i++) x[i] *= inverse;
  for (int step = 0; step < 5; step++) {
    memset(square, 0, sizeof(float) * r * r);
    gemm_transposed(r, r, c, x, r, x, r, square, r);
    gemm(r, r, r, square, r, square, r, PANEL, mix, r, 0);
    for (long i = 0; i < r * r; i++) mix[i] = 2.0315f * mix[i] - 4.7750f * square[i];
    gemm(c, r, r, x, r, mix, r, PANEL, next, r, 0);
    for (long i = 0; i < n; i++) x[i] = 3.4445f * x[i] + next[i];
  }
  float size = rate * 0.2f * sqrtf((float)c);
  for (long i = 0; i < rows; i++)
    for (long j = 0; j < columns; j++) {
      long at = i * columns + j;
      p[at] = p[at] * (1 - rate * decay) - size * x[wide ? j * r + i : at];
    }
  free(x);
  free(next);
  free(square);
  free(mix);
}

void running_mean(long n, float share, const float* p, float* mean) {
  for (long i = 0; i < n; i++) mean[i] += share * (p[i] - mean[i]);
}
