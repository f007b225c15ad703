"""Every kernel against plain torch: values and gradients."""

import numpy as np
import pytest
import torch

import plain
from native import call, fake, new, zeros

N, D = 37, 128


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def floats(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def grads(function, *inputs, slopes):
    """Outputs and gradients of a torch function for given slopes of its outputs."""
    leaves = [torch.from_numpy(a.copy()).requires_grad_(True) for a in inputs]
    outs = function(*leaves)
    outs = outs if isinstance(outs, tuple) else (outs,)
    sum((o * torch.from_numpy(s)).sum() for o, s in zip(outs, slopes)).backward()
    return [o.detach().numpy() for o in outs], [t.grad.numpy() for t in leaves]


def close(a, b, most=2e-4):
    assert a.shape == b.shape
    distance = float(np.linalg.norm(a - b) / (np.linalg.norm(b) + 1e-12))
    assert distance < most, distance


def packed(w):
    n, k = w.shape
    forward, backward = new(-(-n // 32) * 32 * k), new(n * k)
    call("pack_forward", n, k, w, forward)
    call("pack_backward", n, k, w, backward)
    return forward, backward


@pytest.mark.parametrize("m, n, k", [(1, 32, 32), (14, 64, 64), (15, 160, 128), (257, 96, 192), (300, 24, 512)])
def test_products(rng, m, n, k):
    x, w, dy = floats(rng, m, k), floats(rng, n, k), floats(rng, m, n)
    forward, backward = packed(w)
    y = new(m, -(-n // 32) * 32)
    call("gemm", m, n, k, x, k, forward, 32, k * 32, y, y.shape[1], 0)
    close(y[:, :n], x @ w.T, 1e-5)
    dx, dw = np.ones((m, k), np.float32), np.ones((n, k), np.float32)
    call("gemm", m, k, n, dy, n, backward, 32, n * 32, dx, k, 1)
    close(dx, dy @ w + 1, 1e-5)
    call("gemm_transposed", n, k, m, dy, n, x, k, dw, k)
    close(dw, dy.T @ x + 1, 1e-5)


def plain_site(x, pre, y, w, fn, scale, base):
    u = plain.rms_norm((x * pre[:, :, None]).sum(1), w, 1e-20)
    after, post, comb = plain.mixes(x, fn, scale, base, 20, 1e-20)
    return u, after, plain.expand(x, y, post, comb)


def test_site(rng):
    x, pre, y, w = floats(rng, N, 4, D), floats(rng, N, 4), floats(rng, N, D), floats(rng, D)
    fn, scale, base = floats(rng, 24, 4 * D) * 0.2, floats(rng, 3), floats(rng, 24)
    slopes = floats(rng, N, D), floats(rng, N, 4), floats(rng, N, 4, D)
    (u, after, out), want = grads(plain_site, x, pre, y, w, fn, scale, base, slopes=slopes)
    forward, backward = packed(fn)
    mine, rstd, m, r, nxt, post, comb, got = (
        new(N, D),
        new(N),
        new(N, 32),
        new(N),
        new(N, 4),
        new(N, 4),
        new(N, 16),
        np.empty_like(x),
    )
    call("site_in", N, 20, 1e-20, x, pre, w, forward, scale, base, mine, rstd, m, r, nxt, post, comb)
    call("site_out", N, x, y, post, comb, got)
    for a, b in ((mine, u), (nxt, after), (got, out)):
        close(a, b, 1e-5)
    dx, dy, dpost, dcomb, dpre = slopes[2].copy(), np.empty_like(y), new(N, 4), new(N, 16), new(N, 4)
    dw, dfn, dscale, dbase = zeros(D), zeros(24, 4 * D), zeros(3), zeros(24)
    call("site_out_back", N, x, y, post, comb, dx, dy, dpost, dcomb)
    call(
        "site_in_back",
        N,
        20,
        x,
        pre,
        w,
        rstd,
        backward,
        m,
        r,
        scale,
        base,
        nxt,
        post,
        slopes[0],
        slopes[1],
        dpost,
        dcomb,
        dx,
        dpre,
        dw,
        dfn,
        dscale,
        dbase,
    )
    for a, b in zip((dx, dpre, dy, dw, dfn, dscale, dbase), want):
        close(a, b)


def test_collapse(rng):
    x, pre, w, slope = floats(rng, N, 4, D), floats(rng, N, 4), floats(rng, D), floats(rng, N, D)
    (u,), want = grads(
        lambda x, pre, w: plain.rms_norm((x * pre[:, :, None]).sum(1), w, 1e-20), x, pre, w, slopes=(slope,)
    )
    got, rstd, dx, dpre, dw = new(N, D), new(N), zeros(N, 4, D), new(N, 4), zeros(D)
    call("collapse", N, 1e-20, x, pre, w, got, rstd)
    call("collapse_back", N, x, pre, w, rstd, slope, dx, dpre, dw)
    close(got, u, 1e-5)
    for a, b in zip((dx, dpre, dw), want):
        close(a, b)


def test_norm_of_a_part_of_a_row(rng):
    x, w, slope = floats(rng, N, 160), floats(rng, 96), floats(rng, N, 96)
    (y,), (dx, dw) = grads(lambda x, w: plain.rms_norm(x[:, :96], w, 1e-20), x, w, slopes=(slope,))
    got, rstd, mine, mine_w = new(N, 96), new(N), zeros(N, 160), zeros(96)
    call("norm_rows", N, 96, 160, 1e-20, x, w, got, rstd)
    call("norm_rows_back", N, 96, 160, x, w, rstd, slope, mine, mine_w)
    for a, b in ((got, y), (mine, dx), (mine_w, dw)):
        close(a, b)


@pytest.mark.parametrize("back", [False, True])
def test_rotation(rng, back):
    x, angle = floats(rng, N, 4, 64), floats(rng, 50, 8)
    where = rng.integers(0, 50, N).astype(np.int32)
    cosine, sine = np.cos(angle), np.sin(angle)
    want = plain.rope(torch.from_numpy(x), [torch.from_numpy(t[where]) for t in (cosine, sine)], back)
    call("rotate_rows", N, 4, 64, cosine, sine, where, -1.0 if back else 1.0, x)
    close(x, want.numpy(), 1e-6)


def test_pooling(rng):
    ag, slope = floats(rng, 2 * N, 128), floats(rng, N, 64)

    def pool(ag):
        a, g = ag.view(N, 2, 128).split(64, 2)
        return (g.softmax(1) * a).sum(1)

    (y,), (dag,) = grads(pool, ag, slopes=(slope,))
    got, mine = new(N, 64), np.empty_like(ag)
    call("pool_pairs", N, ag, got)
    call("pool_pairs_back", N, ag, slope, mine)
    close(got, y, 1e-5)
    close(mine, dag)


def test_engram_gate(rng):
    x, kv, q, k, slope = (
        floats(rng, N, 4, D),
        floats(rng, N, 5 * D),
        floats(rng, 4, D),
        floats(rng, 4, D),
        floats(rng, N, 4, D),
    )

    def gate(x, kv, q, k):
        key, value = kv[:, : 4 * D].view(-1, 4, D), kv[:, 4 * D :]
        dot = (x * q * k * key).sum(-1) * torch.rsqrt((x * x).mean(-1)) * torch.rsqrt((key * key).mean(-1)) * D**-0.5
        return x + torch.sigmoid(torch.copysign(dot.abs().clamp(min=1e-6).sqrt(), dot))[:, :, None] * value[:, None]

    (y,), want = grads(gate, x, kv, q, k, slopes=(slope,))
    got, dx, dkv, dq, dk = np.empty_like(x), slope.copy(), np.empty_like(kv), np.zeros_like(q), np.zeros_like(k)
    call("engram_gate", N, 1e-20, x, kv, q, k, got)
    call("engram_gate_back", N, 1e-20, x, kv, q, k, dx, dkv, dq, dk)
    close(got, y, 1e-5)
    for a, b in zip((dx, dkv, dq, dk), want):
        close(a, b, 5e-4)


def test_tables(rng):
    table, ids, slope = floats(rng, 20, 32), rng.integers(0, 20, (N, 3)).astype(np.int32), floats(rng, N, 2, 3, 32)
    out, grad = np.empty_like(slope), np.zeros_like(table)
    call("gather", N, 3, 32, 2, ids, table, out)
    call("gather_back", N, 3, 32, 2, ids, slope, grad)
    assert (out == table[ids][:, None]).all()
    want = np.zeros_like(table)
    np.add.at(want, np.broadcast_to(ids[:, None], (N, 2, 3)), slope)
    close(grad, want, 1e-5)


@pytest.mark.parametrize(
    "segment, rows, listed", [(192, 0, False), (192, 96, False), (64, 192, False), (64, 192, True), (192, 96, True)]
)
def test_attention(rng, segment, rows, listed):
    B, Q, H, d = 2, 192, 4, 64
    q, k, sink, slope = floats(rng, B, Q, H, d), floats(rng, B, Q, d), floats(rng, H), floats(rng, B, Q, H, d)
    table = floats(rng, B, rows, d) if rows else None
    visible = np.tile((np.arange(Q) + 1) * rows // Q, (B, 1)).astype(np.int32)
    chosen = None
    if listed:
        chosen = np.full((B, Q, 32), -1, np.int32)
        for b in range(B):
            for t in range(Q):
                n = min(32, visible[b, t])
                chosen[b, t, :n] = np.sort(rng.choice(visible[b, t], n, replace=False)) if n else []

    def run(q, k, sink, *table):
        lists = torch.from_numpy(chosen).long() if listed else None
        return plain.attend(
            q, k, table[0] if table else None, sink, torch.from_numpy(visible), lists, 32, segment, chunk=64
        )

    (y,), want = grads(run, q, k, sink, *([table] if rows else []), slopes=(slope,))
    out, lse = np.empty_like(q), new(B, Q, H)
    inputs = (B, Q, segment, rows, q, k, table, sink, visible, chosen)
    call("attend", *inputs, out, lse)
    dq, dk, dsink, drows = np.empty_like(q), np.zeros_like(k), zeros(H), zeros(B, rows, d) if rows else None
    call("attend_back", *inputs, out, lse, slope, dq, dk, drows, dsink)
    close(out, y, 1e-5)
    for a, b in zip((dq, dk, dsink, drows), want):
        close(a, b)


def test_experts(rng):
    f, E = 96, 8
    x, w13, w2 = floats(rng, N, D), floats(rng, E + 1, 2 * f, D) * 0.2, floats(rng, E + 1, D, f) * 0.2
    gate, bias, slope = floats(rng, E, D) * 0.3, floats(rng, E) * 0.1, floats(rng, N, D)

    def run(x, gate, w13, w2):
        s = torch.sqrt(torch.nn.functional.softplus(x @ gate.t()))
        choice = (s.detach() + torch.from_numpy(bias)).topk(2, 1).indices
        weight = s.gather(1, choice)
        weight = weight / (weight.sum(1, keepdim=True) + 1e-20) * 1.5
        y = plain.gated(x @ w13[E].t(), 1.0) @ w2[E].t()
        for i in range(2):
            h = plain.gated(torch.einsum("nd,nfd->nf", x, w13[choice[:, i]]), 1.0, weight[:, i])
            y = y + torch.einsum("nf,ndf->nd", h, w2[choice[:, i]])
        return y

    (y,), want = grads(run, x, gate, w13, w2, slopes=(slope,))
    logits = new(N, 32)
    call("gemm", N, E, D, x, D, packed(gate)[0], 32, D * 32, logits, 32, 0)
    choice, weight, load = np.empty((N, 2), np.int32), new(N, 2), zeros(E)
    call("route", N, 1.5, logits, bias, choice, weight, load)
    assert load.sum() == 2 * N
    slots, starts = np.empty(3 * N, np.int32), np.empty(E + 2, np.int32)
    call("sort_tokens", N, choice, slots, starts)
    (forward13, back13), (forward2, back2) = (
        [np.concatenate(part) for part in zip(*map(packed, t))] for t in (w13, w2)
    )
    gu, h, got = new(3 * N, 2 * f), new(3 * N, f), new(N, D)
    call("experts", N, 1.0, 0, x, weight, slots, starts, forward13, forward2, gu, h, got)
    close(got, y, 1e-5)
    dx, dweight, dlogits, dgate, d13, d2 = (
        zeros(N, D),
        new(N, 2),
        new(N, 32),
        zeros(E, D),
        zeros(E + 1, 2 * f, D),
        zeros(E + 1, D, f),
    )
    call(
        "experts_back",
        N,
        1.0,
        x,
        weight,
        slots,
        starts,
        back13,
        back2,
        gu,
        h,
        slope,
        dx,
        dweight,
        d13[:E],
        d2[:E],
        d13[E],
        d2[E],
    )
    call("route_back", N, 1.5, logits, choice, dweight, dlogits)
    call("gemm_transposed", E, D, N, dlogits, 32, x, D, dgate, D)
    call("gemm", N, D, E, dlogits, 32, packed(gate)[1], 32, E * 32, dx, D, 1)
    for a, b in zip((dx, dgate, d13, d2), want):
        close(a, b)


def test_cross_entropy(rng):
    V, n = 1536, 70
    h, head, wanted, weight = (
        floats(rng, n, D),
        floats(rng, V, D) * 0.3,
        rng.integers(0, V, n).astype(np.int32),
        np.abs(floats(rng, n)),
    )
    weight[::5] = 0

    def run(h, head):
        each = torch.nn.functional.cross_entropy(h @ head.t(), torch.from_numpy(wanted).long(), reduction="none")
        return (each * torch.from_numpy(weight)).sum()[None]

    (loss,), (dh, dhead) = grads(run, h, head, slopes=(np.ones(1, np.float32),))
    take = np.flatnonzero(weight).astype(np.int32)
    forward, backward = packed(head)
    mine, mine_head, best, losses = np.zeros_like(h), np.zeros_like(head), np.full(n, -1, np.int32), zeros(n)
    total = call("cross_entropy", len(take), take, h, forward, backward, wanted, weight, mine, mine_head, best, losses)
    assert abs(total - loss[0]) < 1e-4 * loss[0]
    assert (best[take] == (h @ head.T).argmax(1)[take]).all()
    close(mine, dh)
    close(mine_head, dhead)


def scores_of(q, weight, keys):
    return (torch.relu(torch.einsum("qhd,rd->qhr", q, keys)) * weight[:, :4, None]).sum(1)


def test_choice_of_rows(rng):
    Q, R = 64, 300
    q, weight, keys = floats(rng, Q, 4, 32), floats(rng, Q, 32), floats(rng, R, 32)
    visible = np.linspace(1, R, Q).astype(np.int32)
    scores = scores_of(*(torch.from_numpy(t) for t in (q, weight, keys))).numpy()
    pool, first, second = np.empty((Q, 16), np.int32), np.empty((Q, 32), np.int32), np.empty((Q, 32), np.int32)
    call("choose_rows", 1, Q, R, q, weight, keys, visible, 1, pool, first)
    call("choose_rows", 1, Q, R, q, weight, keys, visible, 0, pool, second)
    for t in range(Q):
        seen = scores[t, : visible[t]]
        order = np.sort(np.argsort(-seen, kind="stable")[:32])
        assert (first[t][: len(order)] == order).all() and (first[t][len(order) :] == -1).all()
        blocks = np.array([seen[i : i + 8].max() for i in range(0, len(seen), 8)])
        blocks[-1] = np.inf
        kept = np.sort(np.argsort(-blocks, kind="stable")[:16])
        assert (pool[t][: len(kept)] == kept).all()
        inside = np.isin(np.arange(len(seen)) // 8, kept)
        order = np.sort(np.argsort(-np.where(inside, seen, -np.inf), kind="stable")[: min(32, inside.sum())])
        assert (second[t][: len(order)] == order).all() and (second[t][len(order) :] == -1).all()


def test_index_loss(rng):
    Q, R = 32, 70
    q, weight, keys, mass = floats(rng, Q, 4, 32), floats(rng, Q, 32), floats(rng, R, 32), np.abs(floats(rng, Q, R))
    visible = np.full(Q, R, np.int32)
    visible[:6] = 0, 1, 20, 20, 20, 20
    mass[:2] = 0  # nothing to learn from
    seen = torch.arange(R)[None] < torch.from_numpy(visible)[:, None]

    def run(q, weight, keys):
        p = torch.from_numpy(mass) * seen
        p = p / p.sum(1, keepdim=True).clamp(min=1e-9)
        logs = scores_of(q, weight, keys).masked_fill(~seen, -1e30).log_softmax(1)
        return (p * ((p + 1e-9).log() - logs))[2:].sum()[None] / Q

    (loss,), want = grads(run, q, weight, keys, slopes=(np.ones(1, np.float32),))
    dq, dweight, dkeys = np.zeros_like(q), np.zeros_like(weight), np.zeros_like(keys)
    got = call("index_loss", Q, R, q, weight, keys, visible, Q, np.arange(Q, dtype=np.int32), mass, dq, dweight, dkeys)
    assert abs(got - loss[0]) < 1e-4 * loss[0]
    for a, b in zip((dq, dweight, dkeys), want):
        close(a, b)


def test_attention_mass(rng):
    Q, R, take = 64, 50, np.array([0, 31, 63], np.int32)
    q, k, sink, rows = floats(rng, 1, Q, 4, 64), floats(rng, 1, Q, 64), floats(rng, 4), floats(rng, 1, R, 64)
    visible = np.full((1, Q), R, np.int32)
    out, lse, mass = np.empty_like(q), new(1, Q, 4), zeros(3, R)
    call("attend", 1, Q, Q, R, q, k, rows, sink, visible, None, out, lse)
    call("attention_mass", Q, R, q, rows, visible, lse, 3, take, mass)
    want = np.exp(np.einsum("thd,rd->thr", q[0, take], rows[0]) / 8 - lse[0, take][:, :, None]).sum(1)
    close(mass, want, 1e-5)
    assert (mass.sum(1) < 4).all()


@pytest.mark.parametrize("shape", [(96, 128), (256, 96), (64, 64)])
def test_muon_makes_orthogonal_updates(rng, shape):
    p, m, g = zeros(*shape), zeros(*shape), floats(rng, *shape)
    call("muon", *shape, g, np.zeros_like(g), 1.0, 1.0, 0.0, 0.95, p, m)
    values = np.linalg.svd(p / (0.2 * max(shape) ** 0.5), compute_uv=False)
    assert values.min() > 0.3 and values.max() < 1.4
    close(m, g, 1e-6)
    assert (p * g).sum() < 0


def test_adamw(rng):
    p, g, h = floats(rng, 100), floats(rng, 100), floats(rng, 100)
    want = torch.from_numpy(p.copy()).requires_grad_(True)
    other = torch.optim.AdamW([want], lr=1e-2, betas=(0.9, 0.95), weight_decay=0.05)
    m, v = np.zeros_like(p), np.zeros_like(p)
    for step in range(1, 4):
        want.grad = torch.from_numpy((g + h) * 0.5 * step)
        other.step()
        call("adamw", 100, g * step, h * step, 0.5, 1e-2, 0.05, 0.9, 0.95, 1 - 0.9**step, 1 - 0.95**step, p, m, v)
    close(p, want.detach().numpy(), 1e-5)


def test_bf16(rng):
    x = floats(rng, 1000) * 10.0 ** rng.integers(-20, 20, 1000)
    x = x.astype(np.float32)
    assert (fake("bf16_rows", x) == torch.from_numpy(x).bfloat16().float().numpy()).all()
