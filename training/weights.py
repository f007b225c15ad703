"""All weights in one flat array, their gradients in another, and the packed copies that the kernels read.

Names are the official ones, but the experts of a layer are stacked: `ffn.experts.w13` [8, 192, 128] and
`ffn.experts.w2` [8, 128, 96].
"""

import numpy as np

from native import call, fake, new

ALIGN = 16  # floats
FP8 = (
    "attn.wq_a.weight",
    "attn.wq_b.weight",
    "attn.wkv.weight",
    "attn.wo_a.weight",
    "attn.wo_b.weight",
    "indexer.wq_b.weight",
    "engram.wkv.weight",
    "shared_experts.w1.weight",
    "shared_experts.w3.weight",
    "shared_experts.w2.weight",
    "main_proj.weight",
)


def kernel_of(name: str) -> str | None:
    """The fake quantizer of a tensor: what the checkpoint stores it as. None: float32."""
    if ".experts.w" in name:
        return "fp4_rows"
    if name.endswith("engram.embed.weight"):
        return "fp8_rows"
    if name.endswith(FP8):
        return "fp8_tiles"
    return None if "hc_" in name or name.endswith(("attn_sink", "gate.bias")) else "bf16_rows"


class Layout:
    """Where every tensor lies in a flat array. Matrices that are multiplied together (wq_a and wkv, ...) follow each
    other in `shapes`.
    """

    def __init__(self, shapes: dict[str, tuple[int, ...]]):
        self.shapes, self.start, at = shapes, {}, 0
        for name, shape in shapes.items():
            self.start[name] = at
            at += -(-int(np.prod(shape)) // ALIGN) * ALIGN
        self.size = at

    def views(self, flat: np.ndarray) -> dict[str, np.ndarray]:
        return {n: flat[s : s + int(np.prod(self.shapes[n]))].reshape(self.shapes[n]) for n, s in self.start.items()}


class Weights:
    def __init__(self, layout: Layout, flat: np.ndarray, gradient: np.ndarray):
        self.layout, self.flat, self.gradient = layout, flat, gradient
        self.master, self.grad = layout.views(flat), layout.views(gradient)
        self._rounded = np.empty_like(flat)
        self.value = self.master
        self.forward, self.backward = {}, {}

    def refresh(self, quantize: bool):
        """To be called after every change of the weights."""
        self.value = self.layout.views(self._rounded) if quantize else self.master
        if quantize:
            for name, out in self.value.items():
                kernel = kernel_of(name)
                if kernel is None:
                    out[...] = self.master[name]
                else:
                    fake(kernel, self.master[name], out)
        for name in self.layout.shapes:
            self._pack(name)

    def _pack(self, name: str):
        value = self.value[name]
        if name.endswith(("attn.wq_a.weight", "compressor.wkv.weight")):
            self._pack_matrix(name, self._joined(name))
        elif name.endswith("experts.w13"):
            self._pack_experts(name, name.replace("experts.w13", "shared_experts.w1.weight"), value.shape[1:])
        elif name.endswith("experts.w2"):
            self._pack_experts(name, name.replace("experts.w2", "shared_experts.w2.weight"), value.shape[1:])
        elif name.endswith(
            (
                "wq_b.weight",
                "wo_a.weight",
                "wo_b.weight",
                "gate.weight",
                "wk.weight",
                "weights_proj.weight",
                "engram.wkv.weight",
                "head.weight",
                "_fn",
            )
        ):
            self._pack_matrix(name, value)

    def _joined(self, name: str) -> np.ndarray:
        """The matrix that begins with this tensor."""
        return self._two(self.value, name, self._partner(name))

    def joined_grad(self, name: str) -> np.ndarray:
        return self._two(self.grad, name, self._partner(name))

    @staticmethod
    def _partner(name: str) -> str:
        """What is multiplied together with this tensor: wkv with wq_a, the compressor's wgate with its wkv."""
        return name.replace("wq_a", "wkv") if "wq_a" in name else name.replace("wkv", "wgate")

    def _two(self, views: dict, name: str, partner: str) -> np.ndarray:
        if partner not in views:
            return views[name]
        flat = self.gradient if views is self.grad else self.flat if views is self.master else self._rounded
        start, size = self.layout.start[name], views[name].size + views[partner].size
        assert self.layout.start[partner] == start + views[name].size
        return flat[start : start + size].reshape(-1, views[name].shape[1])

    def _pack_matrix(self, name: str, value: np.ndarray):
        n, k = value.shape
        if name not in self.forward:
            self.forward[name], self.backward[name] = new(-(-n // 32) * 32 * k), new(n * k)
        call("pack_forward", n, k, value, self.forward[name])
        call("pack_backward", n, k, value, self.backward[name])

    def _pack_experts(self, name: str, shared: str, shape: tuple[int, int]):
        """Eight routed experts and the shared one behind them."""
        n, k = shape
        parts = list(self.value[name])
        parts.append(
            self._two(self.value, shared, shared.replace("w1.", "w3.")) if ".w1." in shared else self.value[shared]
        )
        if name not in self.forward:
            self.forward[name], self.backward[name] = new(len(parts), n * k), new(len(parts), n * k)
        for i, part in enumerate(parts):
            call("pack_forward", n, k, part, self.forward[name][i])
            call("pack_backward", n, k, part, self.backward[name][i])
