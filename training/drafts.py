"""One DSpark layer on the frozen backbone: from what the last layers read at a position it guesses the next tokens
all at once.

A pass after position p, which produced token t, runs over [t, noise, noise, noise, noise] at p+1 .. p+5. Every row
sees all five and the window rows that the layer made of the backbone's states up to p. A Markov head corrects each
guess by the one before it; a confidence head says how likely it will be accepted.
"""

import torch
import torch.nn.functional as F

import plain

P = "mtp.0."
BIAS = P + "ffn.gate.bias"


def main_rows(net, taps, position):
    """Window rows [S, L, 64] of committed positions from the taps [S, L, 3 x 128]."""
    S, L, _ = taps.shape
    x = net.norm(net.linear8(net.a(net.r(taps.reshape(S * L, -1))), P + "main_proj.weight"), P + "main_norm.weight")
    return window_rows(net, net.a(x), position.reshape(-1)).view(S, L, -1)


def window_rows(net, x8, position):
    k = net.norm(net.linear8(x8, P + "attn.wkv.weight"), P + "attn.kv_norm.weight")[:, None]
    return net.q(net.r(plain.rope(k, net.tables(position, False))), "fp8_rows")[:, 0]


def attend(net, u, position, ring, seen):
    """u [A x N, 128]: blocks of N rows; ring [A, 32, 64] committed rows, of which `seen` [A, 32] are there."""
    c, p = net.c, P + "attn."
    (A, N), H, D, G = position.shape, c["num_attention_heads"], c["head_dim"], c["o_groups"]
    tables, u8 = net.tables(position.reshape(-1), False), net.a(u)
    qr = net.norm(net.linear8(u8, p + "wq_a.weight"), p + "q_norm.weight")
    q = net.r(plain.rope(net.linear8(net.a(qr), p + "wq_b.weight").view(-1, H, D), tables)).view(A, N, H, D)
    keys = torch.cat((ring, window_rows(net, u8, position.reshape(-1)).view(A, N, D)), 1)
    s = torch.einsum("anhd,akd->anhk", q, keys) * D**-0.5
    s = s.masked_fill(~F.pad(seen, (0, N), value=True)[:, None, None], -1e30)
    s = torch.cat((s, net.w[p + "attn_sink"].view(1, 1, H, 1).expand(A, N, H, 1)), -1)
    o = net.r(torch.einsum("anhk,akd->anhd", s.softmax(-1)[..., :-1], keys)).reshape(-1, H, D)
    o = net.r(plain.rope(o, tables, back=True)).view(-1, G, H * D // G)
    o = net.r(torch.einsum("ngi,goi->ngo", o, net.fp8(p + "wo_a.weight").view(G, -1, H * D // G))).reshape(A * N, -1)
    return net.linear8(net.a(o), p + "wo_b.weight")


def hidden(net, ids, position, ring, seen):
    """Collapsed states [A x N, 128] of blocks with the ids [A, N]."""
    x = net.stored16("embed.weight")[ids.reshape(-1)][:, None].expand(-1, net.c["hc_mult"], -1)
    pre = torch.zeros(len(x), net.c["hc_mult"])
    pre[:, 0] = 1
    u = net.collapse(x, pre, P + "attn_norm.weight")
    pre, post, comb = net.mixes(x, P + "hc_attn")
    x = net.r(plain.expand(x, attend(net, u, position, ring, seen), post, comb))
    u = net.collapse(x, pre, P + "ffn_norm.weight")
    pre, post, comb = net.mixes(x, P + "hc_ffn")
    x = net.r(plain.expand(x, net.moe(P + "ffn.", u), post, comb))
    return net.r((pre[:, :, None] * x).sum(1))


def logits(net, h):
    return net.norm(h, P + "norm.weight") @ net.stored16("head.weight").t()


def markov(net, before):
    """(what the token before adds to the logits, its embedding)"""
    e = net.stored16(P + "markov_head.embed.weight")[before]
    return e @ net.stored16(P + "markov_head.head.weight").t(), e


def confidence(net, h, embedded):
    return (torch.cat((h, embedded), -1) @ net.stored16(P + "confidence_head.proj.weight").t())[..., 0]


@torch.no_grad()
def guess(net, token, position, ring, seen):
    """Greedy guesses [A, N] after `token` [A], which stands at `position` [A]."""
    A, N = len(token), net.c["dspark_block_size"]
    ids = torch.full((A, N), net.c["dspark_noise_token_id"])
    ids[:, 0] = token
    where = position[:, None] + torch.arange(N)
    base, out, before = logits(net, hidden(net, ids, where, ring, seen)).view(A, N, -1), [], token
    for i in range(N):
        before = (base[:, i] + markov(net, before)[0]).argmax(-1)
        out.append(before)
    return torch.stack(out, 1)
