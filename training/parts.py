"""Experts and Engram. Forward pass and gradient."""

from types import SimpleNamespace

import numpy as np

from native import call, new, zeros
from products import add_outer, matmul


class Experts:
    def __init__(self, net, prefix):
        self.net, self.p = net, prefix + "ffn."

    def forward(self, u):
        net, p, c, n = self.net, self.p, self.net.c, len(u)
        f, k = c["moe_intermediate_size"], c["num_experts_per_tok"]
        s = SimpleNamespace(
            u=u,
            x=net.act(u),
            choice=np.empty((n, k), np.int32),
            weight=new(n, k),
            slots=np.empty((k + 1) * n, np.int32),
            starts=np.empty(c["n_routed_experts"] + 2, np.int32),
        )
        s.logits = matmul(u, net.w.forward[p + "gate.weight"], c["n_routed_experts"])
        call(
            "route",
            n,
            c["routed_scaling_factor"],
            s.logits,
            net.bias[p + "gate.bias"],
            s.choice,
            s.weight,
            net.load[p + "gate.bias"],
        )
        call("sort_tokens", n, s.choice, s.slots, s.starts)
        s.gu, s.h, y = new((k + 1) * n, 2 * f), new((k + 1) * n, f), new(n, c["hidden_size"])
        call(
            "experts",
            n,
            c["swiglu_limit"],
            int(net.quantize),
            s.x,
            s.weight,
            s.slots,
            s.starts,
            net.w.forward[p + "experts.w13"],
            net.w.forward[p + "experts.w2"],
            s.gu,
            s.h,
            y,
        )
        return y, s

    def backward(self, s, dy):
        net, p, c, w, g = self.net, self.p, self.net.c, self.net.w, self.net.w.grad
        dweight, dlogits = np.empty_like(s.weight), np.empty_like(s.logits)
        du = zeros(*s.u.shape)
        shared = p + "shared_experts.w"
        call(
            "experts_back",
            len(dy),
            c["swiglu_limit"],
            s.x,
            s.weight,
            s.slots,
            s.starts,
            w.backward[p + "experts.w13"],
            w.backward[p + "experts.w2"],
            s.gu,
            s.h,
            dy,
            du,
            dweight,
            g[p + "experts.w13"],
            g[p + "experts.w2"],
            g[shared + "1.weight"],
            g[shared + "2.weight"],
        )
        call("route_back", len(dy), c["routed_scaling_factor"], s.logits, s.choice, dweight, dlogits)
        E, d = c["n_routed_experts"], s.u.shape[1]
        add_outer(dlogits, s.u, g[p + "gate.weight"], E)
        call("gemm", len(dy), d, E, dlogits, dlogits.shape[1], w.backward[p + "gate.weight"], 32, E * 32, du, d, 1)
        return du


class Engram:
    def __init__(self, net, i):
        self.net, self.i, self.p = net, i, f"layers.{i}.engram."

    def forward(self, s, x, ids):
        net, p, c, w = self.net, self.p, self.net.c, self.net.w
        rows = np.ascontiguousarray(net.hash.ids(self.i, ids).reshape(len(x), -1), np.int32)
        e = new(len(x), rows.shape[1] * c["engram_head_dim"])
        call("gather", len(x), rows.shape[1], c["engram_head_dim"], 1, rows, w.value[p + "embed.weight"], e)
        kv, out = matmul(e, w.forward[p + "wkv.weight"], (c["hc_mult"] + 1) * c["hidden_size"]), np.empty_like(x)
        call("engram_gate", len(x), c["rms_norm_eps"], x, kv, w.value[p + "q_weight"], w.value[p + "k_weight"], out)
        s.__dict__[p] = (rows, e, kv, x)
        return out

    def backward(self, s, dx):
        """dx is changed in place."""
        net, p, c, w, g = self.net, self.p, self.net.c, self.net.w, self.net.w.grad
        rows, e, kv, x = s.__dict__.pop(p)
        dkv = np.empty_like(kv)
        call(
            "engram_gate_back",
            len(x),
            c["rms_norm_eps"],
            x,
            kv,
            w.value[p + "q_weight"],
            w.value[p + "k_weight"],
            dx,
            dkv,
            g[p + "q_weight"],
            g[p + "k_weight"],
        )
        add_outer(dkv, e, g[p + "wkv.weight"])
        de = matmul(dkv, w.backward[p + "wkv.weight"], e.shape[1])
        call("gather_back", len(x), rows.shape[1], c["engram_head_dim"], 1, rows, de, g[p + "embed.weight"])
