"""Attention: the rows that older tokens are made into, the choice among them, the joint softmax. Forward and
gradient.
"""

from types import SimpleNamespace

import numpy as np

from native import call, fake, new, zeros
from products import add_outer, matmul


class RowMaker:
    """Rows for the attention of all layers up to the next maker, and index keys, from the attention input of all
    tokens.
    """

    def __init__(self, net, i):
        self.net, self.p, self.ratio = net, f"layers.{i}.attn.", net.c["compress_ratios"][i]

    def forward(self, u, at):
        net, p, D = self.net, self.p, self.net.c["head_dim"]
        w, eps = net.w, net.c["rms_norm_eps"]
        s = SimpleNamespace(u=u, count=at.count // self.ratio)
        s.position = np.ascontiguousarray(at.position[:: self.ratio])
        s.ag = matmul(u, w.forward[p + "compressor.wkv.weight"], D * self.ratio)
        n = len(s.position)
        s.pooled, s.rstd, s.latent = s.ag, new(n), new(n, D)
        if self.ratio == 2:
            s.pooled = new(n, D)
            call("pool_pairs", n, s.ag, s.pooled)
        call("norm_rows", n, D, D, eps, s.pooled, w.value[p + "compressor.norm.weight"], s.latent, s.rstd)
        s.rows = s.latent.copy()
        self._turn(s.rows, 1, s.position, "fp4_main_rows")
        s.drows = None
        if net.sparse or net.watch is not None:
            self._keys(s)
        return s

    def _turn(self, x, heads, position, kernel):
        cosine, sine = self.net.tables[True]
        call("rotate_rows", len(position), heads, x.shape[-1], cosine, sine, position, 1.0, x)
        if self.net.quantize:
            fake(kernel, x, x)

    def _keys(self, s):
        net, p, dim = self.net, self.p + "indexer.", self.net.c["index_head_dim"]
        s.raw_keys, s.key_rstd = matmul(s.latent, net.w.forward[p + "wk.weight"], dim), new(len(s.latent))
        s.keys = np.empty_like(s.raw_keys)
        call(
            "norm_rows",
            len(s.latent),
            dim,
            dim,
            net.c["rms_norm_eps"],
            s.raw_keys,
            net.w.value[p + "k_norm.weight"],
            s.keys,
            s.key_rstd,
        )
        self._turn(s.keys, 1, s.position, "fp4_rows")

    def gradient(self, s):
        """Where the layers that read these rows add their gradients."""
        if s.drows is None:
            s.drows = np.zeros_like(s.rows)
        return s.drows

    def backward(self, s):
        net, p, D, w, g = self.net, self.p, self.net.c["head_dim"], self.net.w, self.net.w.grad
        d, n = self.gradient(s), len(s.rows)
        cosine, sine = net.tables[True]
        call("rotate_rows", n, 1, D, cosine, sine, s.position, -1.0, d)
        dpooled = np.empty_like(s.pooled)
        call(
            "norm_rows_back",
            n,
            D,
            D,
            s.pooled,
            w.value[p + "compressor.norm.weight"],
            s.rstd,
            d,
            dpooled,
            g[p + "compressor.norm.weight"],
        )
        dag = dpooled
        if self.ratio == 2:
            dag = np.empty_like(s.ag)
            call("pool_pairs_back", n, s.ag, dpooled, dag)
        name = p + "compressor.wkv.weight"
        add_outer(dag, s.u, w.joined_grad(name))
        return matmul(dag, w.backward[name], s.u.shape[1])

    def keys_backward(self, s, dkeys):
        """Of the index keys alone; the latents count as given."""
        net, p, dim = self.net, self.p + "indexer.", self.net.c["index_head_dim"]
        cosine, sine = net.tables[True]
        call("rotate_rows", len(dkeys), 1, dim, cosine, sine, s.position, -1.0, dkeys)
        draw = np.empty_like(dkeys)
        call(
            "norm_rows_back",
            len(dkeys),
            dim,
            dim,
            s.raw_keys,
            net.w.value[p + "k_norm.weight"],
            s.key_rstd,
            dkeys,
            draw,
            net.w.grad[p + "k_norm.weight"],
        )
        add_outer(draw, s.latent, net.w.grad[p + "wk.weight"])


class Attention:
    def __init__(self, net, i):
        c = net.c
        self.net, self.i, self.p, self.ratio = net, i, f"layers.{i}.attn.", c["compress_ratios"][i]
        self.chooses = i in c["index_source_layer_ids"]
        self.heads, self.dim, self.rank = c["num_attention_heads"], c["head_dim"], c["q_lora_rank"]
        self.groups, self.group_width = c["o_groups"], self.heads * self.dim // c["o_groups"]

    def _rotate(self, x, heads, at, sign=1.0):
        cosine, sine = self.net.tables[self.ratio > 0]
        call("rotate_rows", at.n, heads, self.dim, cosine, sine, at.position, sign, x)

    def forward(self, u, at, shared):
        net, p, w, n = self.net, self.p, self.net.w, at.n
        eps, s = net.c["rms_norm_eps"], SimpleNamespace(at=at)
        s.u = net.act(u)
        s.raw = matmul(s.u, w.forward[p + "wq_a.weight"], self.rank + self.dim)
        s.qr, s.q_rstd, s.k, s.k_rstd = new(n, self.rank), new(n), new(n, self.dim), new(n)
        call("norm_rows", n, self.rank, s.raw.shape[1], eps, s.raw, w.value[p + "q_norm.weight"], s.qr, s.q_rstd)
        call(
            "norm_rows",
            n,
            self.dim,
            s.raw.shape[1],
            eps,
            s.raw.reshape(-1)[self.rank :],
            w.value[p + "kv_norm.weight"],
            s.k,
            s.k_rstd,
        )
        s.qr = net.act(s.qr)
        s.q = matmul(s.qr, w.forward[p + "wq_b.weight"], self.heads * self.dim)
        self._rotate(s.q, self.heads, at)
        self._rotate(s.k, 1, at)
        if net.quantize:
            fake("fp8_rows", s.k, s.k)
        s.rows = shared.rows if self.ratio else None
        if self.ratio and self.chooses:
            shared.chosen = shared.mass = None
            if net.sparse or net.watch is not None:
                self._choose(u, s, at, shared)
        s.chosen = shared.chosen if self.ratio else None
        s.out, s.lse = new(n, self.heads * self.dim), new(n, self.heads)
        call("attend", *self._inputs(s), s.out, s.lse)
        if self.ratio and shared.mass is not None:
            call(
                "attention_mass",
                at.count,
                s.rows.count,
                s.q,
                s.rows.rows,
                at.visible(self.ratio),
                s.lse,
                len(shared.take),
                shared.take,
                shared.mass,
            )
        return self._project(s), s

    def _inputs(self, s):
        at, rows = s.at, s.rows
        return (
            at.batch,
            at.count,
            at.segment,
            rows.count if rows else 0,
            s.q,
            s.k,
            rows.rows if rows else None,
            self.net.w.value[self.p + "attn_sink"],
            at.visible(max(self.ratio, 1)),
            s.chosen,
        )

    def _project(self, s):
        net, p, w, n, wide = self.net, self.p, self.net.w, s.at.n, self.group_width
        s.heads, rank = s.out.copy(), net.c["o_lora_rank"]
        self._rotate(s.heads, self.heads, s.at, -1.0)
        s.z, packed = new(n, self.groups * rank), w.forward[p + "wo_a.weight"]
        for g in range(self.groups):
            call(
                "gemm",
                n,
                rank,
                wide,
                s.heads.reshape(-1)[g * wide :],
                s.heads.shape[1],
                packed[g * rank * wide :],
                32,
                wide * 32,
                s.z.reshape(-1)[g * rank :],
                s.z.shape[1],
                0,
            )
        s.z = net.act(s.z)
        return matmul(s.z, w.forward[p + "wo_b.weight"], net.c["hidden_size"])

    def backward(self, s, dy):
        net, p, w, g, n = self.net, self.p, self.net.w, self.net.w.grad, s.at.n
        add_outer(dy, s.z, g[p + "wo_b.weight"])
        dout = self._project_back(s, matmul(dy, w.backward[p + "wo_b.weight"], s.z.shape[1]))
        self._rotate(dout, self.heads, s.at)
        dq, dk = np.empty_like(s.q), np.zeros_like(s.k)
        drows = self.net.makers[self._maker()].gradient(s.rows) if s.rows else None
        call("attend_back", *self._inputs(s), s.out, s.lse, dout, dq, dk, drows, g[p + "attn_sink"])
        self._rotate(dq, self.heads, s.at, -1.0)
        self._rotate(dk, 1, s.at, -1.0)
        add_outer(dq, s.qr, g[p + "wq_b.weight"])
        dqr, draw = matmul(dq, w.backward[p + "wq_b.weight"], self.rank), np.empty_like(s.raw)
        call(
            "norm_rows_back",
            n,
            self.rank,
            draw.shape[1],
            s.raw,
            w.value[p + "q_norm.weight"],
            s.q_rstd,
            dqr,
            draw,
            g[p + "q_norm.weight"],
        )
        call(
            "norm_rows_back",
            n,
            self.dim,
            draw.shape[1],
            s.raw.reshape(-1)[self.rank :],
            w.value[p + "kv_norm.weight"],
            s.k_rstd,
            dk,
            draw.reshape(-1)[self.rank :],
            g[p + "kv_norm.weight"],
        )
        add_outer(draw, s.u, w.joined_grad(p + "wq_a.weight"))
        return matmul(draw, w.backward[p + "wq_a.weight"], s.u.shape[1])

    def _maker(self):
        return max(i for i in self.net.c["kv_source_layer_ids"] if i <= self.i)

    def _project_back(self, s, dz):
        w, n, wide, rank = self.net.w, s.at.n, self.group_width, self.net.c["o_lora_rank"]
        dheads, name = np.empty_like(s.heads), self.p + "wo_a.weight"
        for g in range(self.groups):
            part, lines = dz.reshape(-1)[g * rank :], self.groups * rank
            call(
                "gemm",
                n,
                wide,
                rank,
                part,
                lines,
                w.backward[name][g * rank * 32 :],
                32,
                lines * 32,
                dheads.reshape(-1)[g * wide :],
                dheads.shape[1],
                0,
            )
            call(
                "gemm_transposed",
                rank,
                wide,
                n,
                part,
                lines,
                s.heads.reshape(-1)[g * wide :],
                s.heads.shape[1],
                w.grad[name].reshape(-1)[g * rank * wide :],
                wide,
            )
        return dheads

    # ---- the choice of rows ----------------------------------------------------------------------

    def _choose(self, u, s, at, shared):
        net, c, p = self.net, self.net.c, self.p + "indexer."
        heads, dim = c["index_n_heads"], c["index_head_dim"]
        q = matmul(s.qr, net.w.forward[p + "wq_b.weight"], heads * dim)
        cosine, sine = net.tables[True]
        call("rotate_rows", at.n, heads, dim, cosine, sine, at.position, 1.0, q)
        if net.quantize:
            fake("fp4_rows", q, q)
        weight = matmul(u, net.w.forward[p + "weights_proj.weight"], heads)
        weight *= dim**-0.5 * heads**-0.5
        rows = shared.rows
        if net.sparse:
            if self.i == net.boundary:
                shared.pool = np.empty((at.n, c["candidate_topk_blocks"]), np.int32)
            pool = shared.pool if self.i >= net.boundary else None
            shared.chosen = np.empty((at.n, c["index_topk"]), np.int32)
            call(
                "choose_rows",
                at.batch,
                at.count,
                rows.count,
                q,
                weight,
                rows.keys,
                at.visible(self.ratio),
                int(self.i == net.boundary),
                pool,
                shared.chosen,
            )
        if net.watch is not None:
            take = net.take(at)
            shared.take, shared.mass = take, zeros(len(take), rows.count)
            net.watch.append(
                SimpleNamespace(
                    layer=self,
                    q=q,
                    weight=weight,
                    rows=rows,
                    maker=net.makers[self._maker()],
                    at=at,
                    u=u,
                    qr=s.qr,
                    take=take,
                    mass=shared.mass,
                )
            )

    def learn_choice(self, seen):
        """Adds the gradients of the index weights; what attention read is given. Returns the loss."""
        net, c, p, at, rows = self.net, self.net.c, self.p + "indexer.", seen.at, seen.rows
        heads, dim = c["index_n_heads"], c["index_head_dim"]
        dq, dweight, dkeys = np.zeros_like(seen.q), np.zeros_like(seen.weight), np.zeros_like(rows.keys)
        loss = call(
            "index_loss",
            at.count,
            rows.count,
            seen.q,
            seen.weight,
            rows.keys,
            at.visible(self.ratio),
            len(seen.take),
            seen.take,
            seen.mass,
            dq,
            dweight,
            dkeys,
        )
        cosine, sine = net.tables[True]
        call("rotate_rows", at.n, heads, dim, cosine, sine, at.position, -1.0, dq)
        add_outer(dq, seen.qr, net.w.grad[p + "wq_b.weight"])
        dweight *= dim**-0.5 * heads**-0.5
        add_outer(dweight, seen.u, net.w.grad[p + "weights_proj.weight"], heads)
        seen.maker.keys_backward(rows, dkeys)
        return loss
