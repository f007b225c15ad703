// Hyper-connections. A site reads the streams [n, 4, 128] in two ways: a weighted sum of them goes
// through a norm into the sublayer, and a projection of all of them gives the coefficients with
// which the sublayer's result is written back.
#include "common.h"

#define LANES 16
#define MAX_ITERATIONS 32
#define EPSILON 1e-6f
#define BLOCK 128  // tokens of a block: its streams fit in the second cache

typedef float Lane[LANES];

static inline float sum_of(Vec v) {
  float sum = 0;
  for (int i = 0; i < 16; i++) sum += v[i];
  return sum;
}

// ---- coefficients
// ---------------------------------------------------------------------------------------------------------------------

// Sixteen tokens at a time. states[0] is the softmax plus epsilon; states[s] the matrix before step
// s; columns first, then rows and columns.
static void balance(const Lane* a, int iterations, Lane (*states)[16], Lane* out) {
  Lane m[16];
  for (int j = 0; j < 4; j++)
    for (int l = 0; l < LANES; l++) {
      float most = a[4 * j][l], sum = 0;
      for (int k = 1; k < 4; k++) most = fmaxf(most, a[4 * j + k][l]);
      for (int k = 0; k < 4; k++) {
        m[4 * j + k][l] = expf(a[4 * j + k][l] - most);
        sum += m[4 * j + k][l];
      }
      for (int k = 0; k < 4; k++) m[4 * j + k][l] = m[4 * j + k][l] / sum + EPSILON;
    }
  for (int s = 0; s < 2 * iterations - 1; s++) {
    memcpy(states[s], m, sizeof m);
    int column = s % 2 == 0, outer = column ? 1 : 4, inner = column ? 4 : 1;
    for (int o = 0; o < 4; o++)
      for (int l = 0; l < LANES; l++) {
        float* p = &m[o * outer][l];
        float sum = p[0] + p[inner * LANES] + p[2 * inner * LANES] + p[3 * inner * LANES];
        float inverse = 1.0f / (sum + EPSILON);
        for (int i = 0; i < 4; i++) p[i * inner * LANES] *= inverse;
      }
  }
  memcpy(out, m, sizeof m);
}

// g: gradient of the balanced matrices, replaced by that of the logits.
static void balance_back(int iterations, Lane (*states)[16], Lane* out, Lane* g) {
  Lane* next = out;
  for (int s = 2 * iterations - 2; s >= 0; s--) {
    int column = s % 2 == 0, outer = column ? 1 : 4, inner = column ? 4 : 1;
    for (int o = 0; o < 4; o++)
      for (int l = 0; l < LANES; l++) {
        float *gp = &g[o * outer][l], *in = &states[s][o * outer][l], *result = &next[o * outer][l];
        float sum = 0, dot = 0;
        for (int i = 0; i < 4; i++) {
          sum += in[i * inner * LANES];
          dot += gp[i * inner * LANES] * result[i * inner * LANES];
        }
        float inverse = 1.0f / (sum + EPSILON);
        for (int i = 0; i < 4; i++) gp[i * inner * LANES] = (gp[i * inner * LANES] - dot) * inverse;
      }
    next = states[s];
  }
  for (int j = 0; j < 4; j++)
    for (int l = 0; l < LANES; l++) {
      float dot = 0;
      for (int k = 0; k < 4; k++) dot += g[4 * j + k][l] * (states[0][4 * j + k][l] - EPSILON);
      for (int k = 0; k < 4; k++)
        g[4 * j + k][l] = (states[0][4 * j + k][l] - EPSILON) * (g[4 * j + k][l] - dot);
    }
}

static void coefficients(long n, long iterations, const float* m, const float* scale,
                         const float* base, float* next, float* post, float* comb) {
  static __thread Lane states[2 * MAX_ITERATIONS][16];
  for (long t0 = 0; t0 < n; t0 += LANES) {
    long live = least(LANES, n - t0);
    Lane a[16] = {{0}}, out[16];
    for (long l = 0; l < live; l++) {
      const float* p = m + (t0 + l) * PANEL;
      for (int i = 0; i < 4; i++)
        next[(t0 + l) * 4 + i] = 1.0f / (1.0f + expf(-(p[i] * scale[0] + base[i]))) + EPSILON;
      for (int i = 0; i < 4; i++)
        post[(t0 + l) * 4 + i] = 2.0f / (1.0f + expf(-(p[4 + i] * scale[1] + base[4 + i])));
      for (int i = 0; i < 16; i++) a[i][l] = p[8 + i] * scale[2] + base[8 + i];
    }
    balance(a, iterations, states, out);
    for (long l = 0; l < live; l++)
      for (int i = 0; i < 16; i++) comb[(t0 + l) * 16 + i] = out[i][l];
  }
}

static void coefficients_back(long n, long iterations, const float* m, const float* scale,
                              const float* base, const float* next, const float* post,
                              const float* dnext, const float* dpost, const float* dcomb, float* dm,
                              float* dscale, float* dbase) {
  static __thread Lane states[2 * MAX_ITERATIONS][16];
  for (long t0 = 0; t0 < n; t0 += LANES) {
    long live = least(LANES, n - t0);
    Lane a[16] = {{0}}, out[16], g[16] = {{0}};
    for (long l = 0; l < live; l++)
      for (int i = 0; i < 16; i++) {
        a[i][l] = m[(t0 + l) * PANEL + 8 + i] * scale[2] + base[8 + i];
        g[i][l] = dcomb[(t0 + l) * 16 + i];
      }
    balance(a, iterations, states, out);
    balance_back(iterations, states, out, g);
    for (long l = 0; l < live; l++) {
      long t = t0 + l;
      const float* p = m + t * PANEL;
      float* d = dm + t * PANEL;
      for (int i = 0; i < 4; i++) {
        float s = next[t * 4 + i] - EPSILON, first = dnext[t * 4 + i] * s * (1 - s);
        s = 0.5f * post[t * 4 + i];
        float second = 2 * dpost[t * 4 + i] * s * (1 - s);
        d[i] = first * scale[0];
        d[4 + i] = second * scale[1];
        dscale[0] += first * p[i];
        dscale[1] += second * p[4 + i];
        dbase[i] += first;
        dbase[4 + i] += second;
      }
      for (int i = 0; i < 16; i++) {
        d[8 + i] = g[i][l] * scale[2];
        dscale[2] += g[i][l] * p[8 + i];
        dbase[8 + i] += g[i][l];
      }
    }
  }
}

// ---- into a site
// ----------------------------------------------------------------------------------------------------------------------

static void collapse_norm(const float* x, const float* p, const float* weight, float eps, float* u,
                          float* rstd) {
  float sum = 0;
  for (int i = 0; i < HIDDEN; i++) {
    u[i] = p[0] * x[i] + p[1] * x[HIDDEN + i] + p[2] * x[2 * HIDDEN + i] + p[3] * x[3 * HIDDEN + i];
    sum += u[i] * u[i];
  }
  *rstd = 1.0f / sqrtf(sum / HIDDEN + eps);
  for (int i = 0; i < HIDDEN; i++) u[i] *= *rstd * weight[i];
}

// dx += what the collapse and the norm send back, plus k times x.
static void collapse_norm_back(const float* x, const float* p, const float* weight, float rstd,
                               const float* g, float k, float* dx, float* dpre, float* dweight) {
  float u[HIDDEN], dot = 0, s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  const float *x1 = x + HIDDEN, *x2 = x1 + HIDDEN, *x3 = x2 + HIDDEN;
  for (int i = 0; i < HIDDEN; i++) {
    u[i] = p[0] * x[i] + p[1] * x1[i] + p[2] * x2[i] + p[3] * x3[i];
    dot += g[i] * weight[i] * u[i];
    dweight[i] += g[i] * u[i] * rstd;
  }
  float shrink = dot / HIDDEN * rstd * rstd;
  float *d1 = dx + HIDDEN, *d2 = d1 + HIDDEN, *d3 = d2 + HIDDEN;
  for (int i = 0; i < HIDDEN; i++) {
    float du = rstd * (g[i] * weight[i] - u[i] * shrink);
    dx[i] += p[0] * du + k * x[i];
    d1[i] += p[1] * du + k * x1[i];
    d2[i] += p[2] * du + k * x2[i];
    d3[i] += p[3] * du + k * x3[i];
    s0 += du * x[i];
    s1 += du * x1[i];
    s2 += du * x2[i];
    s3 += du * x3[i];
  }
  dpre[0] = s0;
  dpre[1] = s1;
  dpre[2] = s2;
  dpre[3] = s3;
}

// The norm of the weighted sum alone: what the head does.
void collapse(long n, float eps, const float* x, const float* pre, const float* weight, float* u,
              float* rstd) {
  for (long t = 0; t < n; t++)
    collapse_norm(x + t * FLAT, pre + t * 4, weight, eps, u + t * HIDDEN, rstd + t);
}

void collapse_back(long n, const float* x, const float* pre, const float* weight, const float* rstd,
                   const float* du, float* dx, float* dpre, float* dweight) {
  for (long t = 0; t < n; t++)
    collapse_norm_back(x + t * FLAT, pre + t * 4, weight, rstd[t], du + t * HIDDEN, 0,
                       dx + t * FLAT, dpre + t * 4, dweight);
}

// u: input of the sublayer. m [n, 32]: the normed projection, r its norm's factor.
void site_in(long n, long iterations, float eps, const float* x, const float* pre,
             const float* weight, const float* fn, const float* scale, const float* base, float* u,
             float* rstd, float* m, float* r, float* next, float* post, float* comb) {
  for (long t0 = 0; t0 < n; t0 += BLOCK) {
    long live = least(BLOCK, n - t0);
    gemm(live, PANEL, FLAT, x + t0 * FLAT, FLAT, fn, PANEL, FLAT * PANEL, m + t0 * PANEL, PANEL, 0);
    for (long t = t0; t < t0 + live; t++) {
      const float* p = x + t * FLAT;
      float sum = 0;
      for (int i = 0; i < FLAT; i++) sum += p[i] * p[i];
      r[t] = 1.0f / sqrtf(sum / FLAT + eps);
      for (int i = 0; i < PANEL; i++) m[t * PANEL + i] *= r[t];
    }
    collapse(live, eps, x + t0 * FLAT, pre + t0 * 4, weight, u + t0 * HIDDEN, rstd + t0);
    coefficients(live, iterations, m + t0 * PANEL, scale, base, next + t0 * 4, post + t0 * 4,
                 comb + t0 * 16);
  }
}

// dx already holds what came back through the streams; fn is packed for the way back.
void site_in_back(long n, long iterations, const float* x, const float* pre, const float* weight,
                  const float* rstd, const float* fn, const float* m, const float* r,
                  const float* scale, const float* base, const float* next, const float* post,
                  const float* du, const float* dnext, const float* dpost, const float* dcomb,
                  float* dx, float* dpre, float* dweight, float* dfn, float* dscale, float* dbase) {
  static __thread float dm[BLOCK * PANEL];
  for (long t0 = 0; t0 < n; t0 += BLOCK) {
    long live = least(BLOCK, n - t0);
    coefficients_back(live, iterations, m + t0 * PANEL, scale, base, next + t0 * 4, post + t0 * 4,
                      dnext + t0 * 4, dpost + t0 * 4, dcomb + t0 * 16, dm, dscale, dbase);
    for (long t = t0; t < t0 + live; t++) {
      float *d = dm + (t - t0) * PANEL, dot = 0;
      for (int i = 0; i < MIXES; i++) dot += d[i] * m[t * PANEL + i];
      for (int i = 0; i < MIXES; i++) d[i] *= r[t];
      collapse_norm_back(x + t * FLAT, pre + t * 4, weight, rstd[t], du + t * HIDDEN,
                         -dot * r[t] * r[t] / FLAT, dx + t * FLAT, dpre + t * 4, dweight);
    }
    gemm(live, FLAT, MIXES, dm, PANEL, fn, PANEL, MIXES * PANEL, dx + t0 * FLAT, FLAT, 1);
    gemm_transposed(MIXES, FLAT, live, dm, PANEL, x + t0 * FLAT, FLAT, dfn, FLAT);
  }
}

// ---- out of a site
// --------------------------------------------------------------------------------------------------------------------

// out_k = post_k y + sum over j of comb[j][k] x_j
void site_out(long n, const float* x, const float* y, const float* post, const float* comb,
              float* out) {
  for (long t = 0; t < n; t++, x += FLAT, y += HIDDEN, post += 4, comb += 16, out += FLAT)
    for (int k = 0; k < 4; k++) {
      float p = post[k], c0 = comb[k], c1 = comb[4 + k], c2 = comb[8 + k], c3 = comb[12 + k];
      for (int i = 0; i < HIDDEN; i++)
        out[k * HIDDEN + i] = p * y[i] + c0 * x[i] + c1 * x[HIDDEN + i] + c2 * x[2 * HIDDEN + i] +
                              c3 * x[3 * HIDDEN + i];
    }
}

// g: gradient of the streams after the site, replaced by that of the streams before it.
void site_out_back(long n, const float* x, const float* y, const float* post, const float* comb,
                   float* g, float* dy, float* dpost, float* dcomb) {
  for (long t = 0; t < n; t++, x += FLAT, y += HIDDEN, post += 4, comb += 16, g += FLAT,
            dy += HIDDEN, dpost += 4, dcomb += 16) {
    Vec to_post[4] = {{0}}, to_comb[16] = {{0}};
    for (int i = 0; i < HIDDEN; i += 16) {
      Vec in[4], grad[4], value = *(const Vec*)(y + i), sum = {0};
      for (int k = 0; k < 4; k++) {
        in[k] = *(const Vec*)(x + k * HIDDEN + i);
        grad[k] = *(const Vec*)(g + k * HIDDEN + i);
        to_post[k] += grad[k] * value;
        sum += post[k] * grad[k];
      }
      *(Vec*)(dy + i) = sum;
      for (int j = 0; j < 4; j++) {
        Vec d = {0};
        for (int k = 0; k < 4; k++) {
          to_comb[4 * j + k] += grad[k] * in[j];
          d += comb[4 * j + k] * grad[k];
        }
        *(Vec*)(g + j * HIDDEN + i) = d;
      }
    }
    for (int k = 0; k < 4; k++) dpost[k] = sum_of(to_post[k]);
    for (int k = 0; k < 16; k++) dcomb[k] = sum_of(to_comb[k]);
  }
}
