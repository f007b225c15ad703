// Small pieces that work on one row at a time: norms, rotary embedding, the compressor's pooling,
// Engram's gate.
#include "common.h"

// x has `stride` floats a row, of which `width` are normed; out and gradients of it are dense.
void norm_rows(long n, long width, long stride, float eps, const float* x, const float* weight,
               float* out, float* rstd) {
  for (long t = 0; t < n; t++, x += stride, out += width) {
    float sum = 0;
    for (long i = 0; i < width; i++) sum += x[i] * x[i];
    rstd[t] = 1.0f / sqrtf(sum / width + eps);
    for (long i = 0; i < width; i++) out[i] = x[i] * rstd[t] * weight[i];
  }
}

void norm_rows_back(long n, long width, long stride, const float* x, const float* weight,
                    const float* rstd, const float* dout, float* dx, float* dweight) {
  for (long t = 0; t < n; t++, x += stride, dx += stride, dout += width) {
    float r = rstd[t], dot = 0;
    for (long i = 0; i < width; i++) {
      dot += dout[i] * weight[i] * x[i];
      dweight[i] += dout[i] * x[i] * r;
    }
    float shrink = dot / width * r * r;
    for (long i = 0; i < width; i++) dx[i] = r * (dout[i] * weight[i] - x[i] * shrink);
  }
}

// Rotates the last 16 channels of every head in place; sign -1 rotates back. Row t is at
// position[t] of the tables [positions, 8].
void rotate_rows(long n, long heads, long dim, const float* cosine, const float* sine,
                 const int32_t* position, float sign, float* x) {
  for (long t = 0; t < n; t++) {
    const float *c = cosine + position[t] * (ROTARY / 2), *s = sine + position[t] * (ROTARY / 2);
    for (long h = 0; h < heads; h++, x += dim) {
      float* p = x + dim - ROTARY;
      for (int i = 0; i < ROTARY / 2; i++) {
        float a = p[2 * i], b = p[2 * i + 1], turn = sign * s[i];
        p[2 * i] = a * c[i] - b * turn;
        p[2 * i + 1] = a * turn + b * c[i];
      }
    }
  }
}

// Two tokens to one latent: values a and scores g lie side by side, [2 n, 128]; a softmax over the
// two scores of a channel weighs the values.
void pool_pairs(long n, const float* ag, float* out) {
  for (long t = 0; t < n; t++, ag += 4 * HEAD_DIM, out += HEAD_DIM)
    for (int i = 0; i < HEAD_DIM; i++) {
      float w = 1.0f / (1.0f + expf(ag[3 * HEAD_DIM + i] - ag[HEAD_DIM + i]));
      out[i] = w * ag[i] + (1 - w) * ag[2 * HEAD_DIM + i];
    }
}

void pool_pairs_back(long n, const float* ag, const float* dout, float* dag) {
  for (long t = 0; t < n; t++, ag += 4 * HEAD_DIM, dag += 4 * HEAD_DIM, dout += HEAD_DIM)
    for (int i = 0; i < HEAD_DIM; i++) {
      float w = 1.0f / (1.0f + expf(ag[3 * HEAD_DIM + i] - ag[HEAD_DIM + i]));
      float slope = dout[i] * (ag[i] - ag[2 * HEAD_DIM + i]) * w * (1 - w);
      dag[i] = dout[i] * w;
      dag[2 * HEAD_DIM + i] = dout[i] * (1 - w);
      dag[HEAD_DIM + i] = slope;
      dag[3 * HEAD_DIM + i] = -slope;
    }
}

// ---- Engram
// -----------------------------------------------------------------------------------------------------------------------------
// kv [n, 5 x 128]: a key for every stream and one value. Every stream gets the value times a gate
// that its key opens.

#define KV (5 * HIDDEN)
#define KEY_SCALE 0.08838834764831845f  // HIDDEN to the power -1/2

typedef struct {
  float dot, by_x, by_key, gate;
} Gate;

static inline Gate gate_of(const float* x, const float* key, const float* q, const float* k,
                           float eps) {
  float dot = 0, xx = 0, kk = 0;
  for (int i = 0; i < HIDDEN; i++) {
    dot += x[i] * (q[i] * k[i]) * key[i];
    xx += x[i] * x[i];
    kk += key[i] * key[i];
  }
  Gate g = {.by_x = 1.0f / sqrtf(xx / HIDDEN + eps), .by_key = 1.0f / sqrtf(kk / HIDDEN + eps)};
  g.dot = dot * g.by_x * g.by_key * KEY_SCALE;
  g.gate = 1.0f / (1.0f + expf(-copysignf(sqrtf(fmaxf(fabsf(g.dot), 1e-6f)), g.dot)));
  return g;
}

void engram_gate(long n, float eps, const float* x, const float* kv, const float* q, const float* k,
                 float* out) {
  for (long t = 0; t < n; t++, x += FLAT, kv += KV, out += FLAT)
    for (int s = 0; s < STREAMS; s++) {
      Gate g = gate_of(x + s * HIDDEN, kv + s * HIDDEN, q + s * HIDDEN, k + s * HIDDEN, eps);
      for (int i = 0; i < HIDDEN; i++)
        out[s * HIDDEN + i] = x[s * HIDDEN + i] + g.gate * kv[FLAT + i];
    }
}

// dx: gradient after the gate, replaced by that before it.
void engram_gate_back(long n, float eps, const float* x, const float* kv, const float* q,
                      const float* k, float* dx, float* dkv, float* dq, float* dk) {
  for (long t = 0; t < n; t++, x += FLAT, kv += KV, dx += FLAT, dkv += KV) {
    memset(dkv + FLAT, 0, HIDDEN * sizeof(float));
    for (int s = 0; s < STREAMS; s++) {
      const float *xs = x + s * HIDDEN, *key = kv + s * HIDDEN, *qs = q + s * HIDDEN,
                  *ks = k + s * HIDDEN;
      float *d = dx + s * HIDDEN, *dkey = dkv + s * HIDDEN, *dqs = dq + s * HIDDEN,
            *dks = dk + s * HIDDEN;
      Gate g = gate_of(xs, key, qs, ks, eps);
      float dgate = 0;
      for (int i = 0; i < HIDDEN; i++) {
        dgate += d[i] * kv[FLAT + i];
        dkv[FLAT + i] += g.gate * d[i];
      }
      float size = fabsf(g.dot),
            slope = size > 1e-6f ? dgate * g.gate * (1 - g.gate) * 0.5f / sqrtf(size) : 0;
      float all = slope * g.by_x * g.by_key * KEY_SCALE;
      float of_x = slope * g.dot * g.by_x * g.by_x / HIDDEN,
            of_key = slope * g.dot * g.by_key * g.by_key / HIDDEN;
      for (int i = 0; i < HIDDEN; i++) {
        float qk = qs[i] * ks[i], both = all * xs[i] * key[i];
        d[i] += all * qk * key[i] - of_x * xs[i];
        dkey[i] = all * qk * xs[i] - of_key * key[i];
        dqs[i] += both * ks[i];
        dks[i] += both * qs[i];
      }
    }
  }
}

// ---- tables
// -----------------------------------------------------------------------------------------------------------------------------

// out [n, per, width] = rows `ids` of the table; `copies` of every token one after the other (the
// streams start as copies).
void gather(long n, long per, long width, long copies, const int32_t* ids, const float* table,
            float* out) {
  for (long t = 0; t < n; t++)
    for (long c = 0; c < copies; c++)
      for (long p = 0; p < per; p++, out += width)
        memcpy(out, table + (long)ids[t * per + p] * width, width * sizeof(float));
}

void gather_back(long n, long per, long width, long copies, const int32_t* ids, const float* dout,
                 float* dtable) {
  for (long t = 0; t < n; t++)
    for (long c = 0; c < copies; c++)
      for (long p = 0; p < per; p++, dout += width) {
        float* to = dtable + (long)ids[t * per + p] * width;
        for (long i = 0; i < width; i++) to[i] += dout[i];
      }
}
