"""The model's operations in plain torch: what the kernels are tested against, and what evaluation runs."""

import math

import torch
import torch.nn.functional as F

import native


class _Fake(torch.autograd.Function):
    """A fake quantizer with a straight-through gradient."""

    @staticmethod
    def forward(ctx, x, kernel):
        return torch.from_numpy(native.fake(kernel, x.detach().contiguous().numpy()))

    @staticmethod
    def backward(ctx, g):
        return g, None


def fake(x, kernel):
    return _Fake.apply(x, kernel)


def bf16(x):
    return x.bfloat16().float()


def rms_norm(x, w, eps):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + eps) * w


def mixes(x, fn, scale, base, iterations, eps):
    """Streams [n, 4, d] -> pre [n, 4], post [n, 4], comb [n, 4, 4]."""
    flat = x.flatten(1)
    m = (flat @ fn.t()) * torch.rsqrt((flat * flat).mean(1, keepdim=True) + eps)
    pre = torch.sigmoid(m[:, :4] * scale[0] + base[:4]) + 1e-6
    post = 2 * torch.sigmoid(m[:, 4:8] * scale[1] + base[4:8])
    comb = (m[:, 8:] * scale[2] + base[8:]).view(-1, 4, 4).softmax(2) + 1e-6
    comb = comb / (comb.sum(1, keepdim=True) + 1e-6)
    for _ in range(iterations - 1):
        comb = comb / (comb.sum(2, keepdim=True) + 1e-6)
        comb = comb / (comb.sum(1, keepdim=True) + 1e-6)
    return pre, post, comb


def expand(x, y, post, comb):
    return post[:, :, None] * y[:, None] + torch.einsum("njk,njd->nkd", comb, x)


def rope(x, tables, back=False):
    """x [n, heads, dim]; cosine and sine [n, 8] turn the last 16 channels."""
    cosine, sine = (t[:, None] for t in tables)
    sine = -sine if back else sine
    keep, turn = x[..., : -2 * cosine.shape[-1]], x[..., -2 * cosine.shape[-1] :]
    a, b = turn[..., 0::2], turn[..., 1::2]
    return torch.cat((keep, torch.stack((a * cosine - b * sine, a * sine + b * cosine), -1).flatten(-2)), -1)


def gated(gu, limit, weight=None):
    g, u = gu.chunk(2, -1)
    h = F.silu(g.clamp(max=limit)) * u.clamp(-limit, limit)
    return h if weight is None else h * weight[:, None]


def attend(q, k, rows, sink, visible, chosen, window, length, exact=False, chunk=256):
    """Joint softmax over the window, the rows and the sink. q [B, Q, H, D]; k [B, Q, D] window rows, cut every
    `length` tokens; rows [B, R, D] or None, of which a token sees the first `visible`, or reads only those of the
    list `chosen` [B, Q, 32] (-1: none). Exact: as the official kernel, unnormalised probabilities in bf16 for the
    values and their sum in float32."""
    B, Q, H, D = q.shape
    out = []
    for t0 in range(0, Q, chunk):
        t1, low = min(Q, t0 + chunk), max(0, t0 - window + 1)
        t, j, part = torch.arange(t0, t1)[:, None], torch.arange(low, t1)[None], q[:, t0:t1]
        near = (j <= t) & (j > t - window) & (j // length == t // length)
        s = (torch.einsum("bqhd,bkd->bqhk", part, k[:, low:t1]) * D**-0.5).masked_fill(~near[None, :, None], -math.inf)
        lists = None
        if rows is not None:
            lists = _listed(rows, visible[:, t0:t1], None if chosen is None else chosen[:, t0:t1])
            s = torch.cat((s, _row_scores(part, *lists)), -1)
        most = torch.maximum(s.amax(-1, keepdim=True), sink.view(1, 1, H, 1)) if not exact else s.amax(-1, keepdim=True)
        e = torch.exp(s - most.detach())
        total = e.sum(-1, keepdim=True) + torch.exp(sink.view(1, 1, H, 1) - most.detach())
        e = bf16(e) if exact else e
        o = torch.einsum("bqhk,bkd->bqhd", e[..., : t1 - low], k[:, low:t1])
        if lists is not None:
            o = o + torch.einsum(
                "bqhk,bkd->bqhd" if lists[0].dim() == 3 else "bqhk,bqkd->bqhd", e[..., t1 - low :], lists[0]
            )
        out.append(o / total)
    return torch.cat(out, 1)


def _listed(rows, visible, chosen):
    """The rows that a chunk can read, [B, R, D] or [B, n, 32, D], and which of them each token does."""
    if chosen is None:
        rows = rows[:, : int(visible.max())]
        return rows, torch.arange(rows.shape[1])[None, None] < visible[:, :, None]
    B, n, k = chosen.shape
    taken = rows.gather(1, chosen.clamp(min=0).view(B, n * k, 1).expand(-1, -1, rows.shape[2])).view(B, n, k, -1)
    return taken, chosen >= 0


def _row_scores(q, rows, seen):
    s = torch.einsum("bqhd,bkd->bqhk" if rows.dim() == 3 else "bqhd,bqkd->bqhk", q, rows) * q.shape[-1] ** -0.5
    return s.masked_fill(~seen[:, :, None], -math.inf)
