"""The forward and backward pass of training, over the kernels. `model.py` says the same in plain torch.

The encoder runs on whole sequences. The decoder runs on everything, or on segments of it ("bounded replay"): windows
are cut at the start of a segment, the rows are those of the whole text.
"""

from types import SimpleNamespace

import numpy as np

from attention import Attention, RowMaker
from native import call, fake, new, zeros
from parts import Engram, Experts
from weights import Weights


class Tokens:
    """A set of tokens that run through a layer together: `count` per sequence, with windows cut every `segment`
    tokens.
    """

    def __init__(self, batch: int, position: np.ndarray, segment: int):
        self.batch, self.count, self.segment = batch, position.shape[1], segment
        self.n = batch * self.count
        self.position = np.ascontiguousarray(position.reshape(-1), np.int32)
        self._visible = {}

    def visible(self, ratio: int) -> np.ndarray:
        if ratio not in self._visible:
            self._visible[ratio] = ((self.position + 1) // ratio).astype(np.int32)
        return self._visible[ratio]


class Site:
    """Hyper-connections around one sublayer."""

    def __init__(self, net: "Network", prefix: str, kind: str):
        self.net, self.norm, self.name = net, f"{prefix}{kind}_norm.weight", f"{prefix}hc_{kind}_"

    def enter(self, x, pre):
        w, c, n = self.net.w, self.net.c, len(x)
        s = SimpleNamespace(
            x=x,
            pre=pre,
            u=new(n, c["hidden_size"]),
            rstd=new(n),
            m=new(n, 32),
            r=new(n),
            next=new(n, 4),
            post=new(n, 4),
            comb=new(n, 16),
        )
        call(
            "site_in",
            n,
            c["hc_sinkhorn_iters"],
            c["rms_norm_eps"],
            x,
            pre,
            w.value[self.norm],
            w.forward[self.name + "fn"],
            w.value[self.name + "scale"],
            w.value[self.name + "base"],
            s.u,
            s.rstd,
            s.m,
            s.r,
            s.next,
            s.post,
            s.comb,
        )
        return s

    def leave(self, s, y):
        s.y, out = y, np.empty_like(s.x)
        call("site_out", len(y), s.x, y, s.post, s.comb, out)
        return out, s.next

    def leave_back(self, s, dx):
        """dx is changed in place; returns the gradient of the sublayer's result."""
        dy, s.dpost, s.dcomb = np.empty_like(s.y), np.empty_like(s.post), np.empty_like(s.comb)
        call("site_out_back", len(dy), s.x, s.y, s.post, s.comb, dx, dy, s.dpost, s.dcomb)
        return dy

    def enter_back(self, s, du, dnext, dx):
        w, g, c = self.net.w, self.net.w.grad, self.net.c
        dpre = np.empty_like(s.pre)
        call(
            "site_in_back",
            len(du),
            c["hc_sinkhorn_iters"],
            s.x,
            s.pre,
            w.value[self.norm],
            s.rstd,
            w.backward[self.name + "fn"],
            s.m,
            s.r,
            w.value[self.name + "scale"],
            w.value[self.name + "base"],
            s.next,
            s.post,
            du,
            dnext,
            s.dpost,
            s.dcomb,
            dx,
            dpre,
            g[self.norm],
            g[self.name + "fn"],
            g[self.name + "scale"],
            g[self.name + "base"],
        )
        return dpre


class Network:
    def __init__(self, text: dict, hashes, weights: Weights, bias: dict[str, np.ndarray], tables):
        self.c, self.hash, self.w, self.bias = text, hashes, weights, bias
        self.tables = tables  # {compressed: (cosine, sine)} for every position
        self.quantize = False  # fake quantizers of weights, GEMM inputs and caches
        self.sparse = False  # the indexer chooses rows; otherwise every visible row is read
        self.watch = None  # a list collects what the indexer learns from
        self.load = {name: zeros(text["n_routed_experts"]) for name in bias}
        self.boundary, self.layers = text["candidate_source_layer_id"], text["num_hidden_layers"]
        prefixes = [f"layers.{i}." for i in range(self.layers)]
        self.sites = [(Site(self, p, "attn"), Site(self, p, "ffn")) for p in prefixes]
        self.attention = [Attention(self, i) for i in range(self.layers)]
        self.experts = [Experts(self, p) for p in prefixes]
        self.makers = {i: RowMaker(self, i) for i in text["kv_source_layer_ids"]}
        self.engrams = {i: Engram(self, i) for i in text["engram_layer_ids"]}

    def act(self, x):
        """The input of a GEMM with quantized weights."""
        return fake("fp8_rows", x) if self.quantize else x

    # ---- forward ---------------------------------------------------------------------------------

    def forward(self, ids, starts=None, length=None, taps=()):
        """ids [B, T], T a multiple of the window; decoder on segments of `length` tokens that begin at starts [B, S],
        or on everything. Returns what `backward` and the loss need; .h [n, 128] goes to the head. `taps`: layers
        whose input streams are kept, averaged.
        """
        B, T = ids.shape
        s = SimpleNamespace(ids=np.ascontiguousarray(ids.reshape(-1), np.int32), layers=[], flat=None, taps={})
        x, pre = new(B * T, 4, self.c["hidden_size"]), zeros(B * T, 4)
        pre[:, 0] = 1
        call("gather", B * T, 1, self.c["hidden_size"], 4, s.ids, self.w.value["embed.weight"], x)
        at, shared = Tokens(B, np.tile(np.arange(T), (B, 1)), T), SimpleNamespace(pool=None)
        for i in range(self.layers):
            if i in self.engrams:
                x = self.engrams[i].forward(s, x, ids)
            if i == self.boundary and starts is not None:
                at, x, pre = self._cut(s, shared, x, pre, at, starts, length)
            if i in taps:
                s.taps[i] = x.mean(1)
            x, pre = self._layer(s, i, x, pre, at, shared)
        s.x, s.pre, s.at = x, pre, at
        s.h, s.rstd = new(at.n, self.c["hidden_size"]), new(at.n)
        call("collapse", at.n, self.c["rms_norm_eps"], x, pre, self.w.value["norm.weight"], s.h, s.rstd)
        return s

    def _cut(self, s, shared, x, pre, at, starts, length):
        """From all tokens to the decoder's segments; the rows of the decoder come from all tokens."""
        B = at.batch
        s.whole = SimpleNamespace(x=x, pre=pre, u=new(at.n, self.c["hidden_size"]), rstd=new(at.n))
        call(
            "collapse",
            at.n,
            self.c["rms_norm_eps"],
            x,
            pre,
            self.w.value[self.sites[self.boundary][0].norm],
            s.whole.u,
            s.whole.rstd,
        )
        shared.rows = s.whole.rows = self.makers[self.boundary].forward(s.whole.u, at)
        position = (np.asarray(starts)[:, :, None] + np.arange(length)).reshape(B, -1)
        s.flat = np.ascontiguousarray((position + np.arange(B)[:, None] * at.count).reshape(-1), np.int32)
        return Tokens(B, position, length), x[s.flat], pre[s.flat]

    def _layer(self, s, i, x, pre, at, shared):
        first, second = self.sites[i]
        keep = SimpleNamespace(attn=first.enter(x, pre))
        if i in self.makers and not (i == self.boundary and s.flat is not None):
            shared.rows = keep.rows = self.makers[i].forward(keep.attn.u, at)
        y, keep.attention = self.attention[i].forward(keep.attn.u, at, shared)
        x, pre = first.leave(keep.attn, y)
        keep.ffn = second.enter(x, pre)
        y, keep.experts = self.experts[i].forward(keep.ffn.u)
        s.layers.append(keep)
        return second.leave(keep.ffn, y)

    # ---- backward --------------------------------------------------------------------------------

    def backward(self, s, dh):
        """Adds the gradients of all weights but the head's; dh [n, 128] is the gradient of s.h."""
        g, d = self.w.grad, self.c["hidden_size"]
        dx, dpre = zeros(*s.x.shape), np.empty_like(s.pre)
        call("collapse_back", s.at.n, s.x, s.pre, self.w.value["norm.weight"], s.rstd, dh, dx, dpre, g["norm.weight"])
        for i in reversed(range(self.layers)):
            dx, dpre = self._layer_back(s.layers[i], i, dx, dpre)
            s.layers[i] = None
            if i == self.boundary and s.flat is not None:
                dx, dpre = self._cut_back(s, dx, dpre)
            if i in self.engrams:
                self.engrams[i].backward(s, dx)
        call("gather_back", len(s.ids), 1, d, 4, s.ids, dx, g["embed.weight"])

    def _layer_back(self, keep, i, dx, dpre):
        first, second = self.sites[i]
        du = self.experts[i].backward(keep.experts, second.leave_back(keep.ffn, dx))
        dpre = second.enter_back(keep.ffn, du, dpre, dx)
        du = self.attention[i].backward(keep.attention, first.leave_back(keep.attn, dx))
        if hasattr(keep, "rows"):
            du += self.makers[i].backward(keep.rows)
        return dx, first.enter_back(keep.attn, du, dpre, dx)

    def _cut_back(self, s, dx_part, dpre_part):
        whole, n = s.whole, len(s.flat)
        dx, dpre = zeros(*whole.x.shape), np.empty_like(whole.pre)
        name = self.sites[self.boundary][0].norm
        du = self.makers[self.boundary].backward(whole.rows)
        call(
            "collapse_back",
            len(du),
            whole.x,
            whole.pre,
            self.w.value[name],
            whole.rstd,
            du,
            dx,
            dpre,
            self.w.grad[name],
        )
        call("gather_back", n, 1, dx[0].size, 1, s.flat, dx_part, dx)
        call("gather_back", n, 1, 4, 1, s.flat, dpre_part, dpre)
        return dx, dpre
