// Router, routed experts and the shared one. The shared expert is treated as one more whose tokens
// are all of them, with weight 1.
#include <stdlib.h>

#include "common.h"

#define WIDE (2 * EXPERT_WIDTH)
#define ALL (EXPERTS + 1)
#define CHUNK 112  // tokens of an expert at a time: a multiple of the rows of a tile

// ---- router
// ---------------------------------------------------------------------------------------------------------------------------

static inline float affinity(float logit) {
  return sqrtf(fmaxf(logit, 0) + log1pf(expf(-fabsf(logit))));
}

// logits [n, 32], of which 8 are used. choice and weight [n, 2]; load [8] counts the tokens of
// every expert.
void route(long n, float factor, const float* logits, const float* bias, int32_t* choice,
           float* weight, float* load) {
  for (long t = 0; t < n; t++, logits += PANEL, choice += 2, weight += 2) {
    float s[EXPERTS];
    int first = -1, second = -1;
    for (int e = 0; e < EXPERTS; e++) s[e] = affinity(logits[e]);
    for (int e = 0; e < EXPERTS; e++) {
      float value = s[e] + bias[e];
      if (first < 0 || value > s[first] + bias[first]) {
        second = first;
        first = e;
      } else if (second < 0 || value > s[second] + bias[second])
        second = e;
    }
    choice[0] = first;
    choice[1] = second;
    float sum = s[first] + s[second] + 1e-20f;
    weight[0] = s[first] / sum * factor;
    weight[1] = s[second] / sum * factor;
    load[first]++;
    load[second]++;
  }
}

void route_back(long n, float factor, const float* logits, const int32_t* choice,
                const float* dweight, float* dlogits) {
  for (long t = 0; t < n; t++, logits += PANEL, choice += 2, dweight += 2, dlogits += PANEL) {
    memset(dlogits, 0, EXPERTS * sizeof(float));
    float a = affinity(logits[choice[0]]), b = affinity(logits[choice[1]]), sum = a + b + 1e-20f;
    float mean = (dweight[0] * a + dweight[1] * b) / sum;
    for (int i = 0; i < 2; i++) {
      float logit = logits[choice[i]], s = i ? b : a;
      dlogits[choice[i]] = factor * (dweight[i] - mean) / sum / (2 * s) / (1 + expf(-logit));
    }
  }
}

// ---- order of the tokens
// ----------------------------------------------------------------------------------------------------------------

// slots [3 n]: token * 2 + its choice, sorted by expert, ascending within one; then every token for
// the shared expert. starts [10].
void sort_tokens(long n, const int32_t* choice, int32_t* slots, int32_t* starts) {
  long count[EXPERTS] = {0};
  for (long i = 0; i < 2 * n; i++) count[choice[i]]++;
  starts[0] = 0;
  for (int e = 0; e < EXPERTS; e++) starts[e + 1] = starts[e] + count[e];
  starts[ALL] = starts[EXPERTS] + n;
  long at[EXPERTS];
  for (int e = 0; e < EXPERTS; e++) at[e] = starts[e];
  for (long i = 0; i < 2 * n; i++) slots[at[choice[i]]++] = i;
  for (long i = 0; i < n; i++) slots[2 * n + i] = 2 * i;
}

static void collect(long n, const int32_t* slots, const float* x, float* out) {
  for (long i = 0; i < n; i++)
    memcpy(out + i * HIDDEN, x + slots[i] / 2 * HIDDEN, HIDDEN * sizeof(float));
}

static void scatter(long n, const int32_t* slots, const float* x, float* out) {
  for (long i = 0; i < n; i++) {
    float* to = out + slots[i] / 2 * HIDDEN;
    for (int c = 0; c < HIDDEN; c++) to[c] += x[i * HIDDEN + c];
  }
}

// ---- the unit
// -----------------------------------------------------------------------------------------------------------------------------

static void gated(float limit, float weight, const float* gu, float* out) {
  for (int i = 0; i < EXPERT_WIDTH; i++) {
    float a = fminf(gu[i], limit), b = fminf(fmaxf(gu[EXPERT_WIDTH + i], -limit), limit);
    out[i] = a / (1.0f + expf(-a)) * b * weight;
  }
}

static float gated_back(float limit, float weight, const float* gu, const float* dout, float* dgu) {
  float sum = 0;
  for (int i = 0; i < EXPERT_WIDTH; i++) {
    float g = gu[i], u = gu[EXPERT_WIDTH + i], a = fminf(g, limit),
          b = fminf(fmaxf(u, -limit), limit);
    float s = 1.0f / (1.0f + expf(-a)), act = a * s;
    sum += dout[i] * act * b;
    dgu[i] = g < limit ? dout[i] * weight * b * (s + act * (1 - s)) : 0;
    dgu[EXPERT_WIDTH + i] = u < limit && u > -limit ? dout[i] * weight * act : 0;
  }
  return sum;
}

// y [n, 128] = sum over the experts of a token. w13 and w2: nine packed matrices each. gu [3 n,
// 192] and h [3 n, 96] are kept for the way back, in the order of the slots.
void experts(long n, float limit, long quantize, const float* x, const float* weight,
             const int32_t* slots, const int32_t* starts, const float* w13, const float* w2,
             float* gu, float* h, float* y) {
  static __thread float in[CHUNK * HIDDEN], out[CHUNK * HIDDEN];
  memset(y, 0, n * HIDDEN * sizeof(float));
  for (int e = 0; e < ALL; e++, w13 += WIDE * HIDDEN, w2 += HIDDEN * EXPERT_WIDTH)
    for (long s = starts[e]; s < starts[e + 1]; s += CHUNK) {
      long live = least(CHUNK, starts[e + 1] - s);
      collect(live, slots + s, x, in);
      gemm(live, WIDE, HIDDEN, in, HIDDEN, w13, PANEL, HIDDEN * PANEL, gu + s * WIDE, WIDE, 0);
      for (long i = s; i < s + live; i++)
        gated(limit, e < EXPERTS ? weight[slots[i]] : 1, gu + i * WIDE, h + i * EXPERT_WIDTH);
      if (quantize) fp8_rows(live * EXPERT_WIDTH / 32, h + s * EXPERT_WIDTH, h + s * EXPERT_WIDTH);
      gemm(live, HIDDEN, EXPERT_WIDTH, h + s * EXPERT_WIDTH, EXPERT_WIDTH, w2, PANEL,
           EXPERT_WIDTH * PANEL, out, HIDDEN, 0);
      scatter(live, slots + s, out, y);
    }
}

// dx is added to. dw13 and dw2 hold the routed experts, the shared one has its own.
void experts_back(long n, float limit, const float* x, const float* weight, const int32_t* slots,
                  const int32_t* starts, const float* w13, const float* w2, const float* gu,
                  const float* h, const float* dy, float* dx, float* dweight, float* dw13,
                  float* dw2, float* dshared13, float* dshared2) {
  static __thread float in[CHUNK * HIDDEN], slope[CHUNK * HIDDEN], dh[CHUNK * EXPERT_WIDTH],
      dgu[CHUNK * WIDE];
  (void)n;
  for (int e = 0; e < ALL; e++, w13 += WIDE * HIDDEN, w2 += HIDDEN * EXPERT_WIDTH) {
    float* to13 = e < EXPERTS ? dw13 + e * WIDE * HIDDEN : dshared13;
    float* to2 = e < EXPERTS ? dw2 + e * HIDDEN * EXPERT_WIDTH : dshared2;
    for (long s = starts[e]; s < starts[e + 1]; s += CHUNK) {
      long live = least(CHUNK, starts[e + 1] - s);
      collect(live, slots + s, dy, slope);
      collect(live, slots + s, x, in);
      gemm(live, EXPERT_WIDTH, HIDDEN, slope, HIDDEN, w2, PANEL, HIDDEN * PANEL, dh, EXPERT_WIDTH,
           0);
      gemm_transposed(HIDDEN, EXPERT_WIDTH, live, slope, HIDDEN, h + s * EXPERT_WIDTH, EXPERT_WIDTH,
                      to2, EXPERT_WIDTH);
      for (long i = 0; i < live; i++) {
        int slot = slots[s + i];
        float d = gated_back(limit, e < EXPERTS ? weight[slot] : 1, gu + (s + i) * WIDE,
                             dh + i * EXPERT_WIDTH, dgu + i * WIDE);
        if (e < EXPERTS) dweight[slot] = d;
      }
      gemm_transposed(WIDE, HIDDEN, live, dgu, WIDE, in, HIDDEN, to13, HIDDEN);
      gemm(live, HIDDEN, WIDE, dgu, WIDE, w13, PANEL, WIDE * PANEL, slope, HIDDEN, 0);
      scatter(live, slots + s, slope, dx);
    }
  }
}
