"""Weights before training."""

import numpy as np


def fill(name: str, view: np.ndarray, rng: np.random.Generator):
    shape = view.shape
    if name.endswith(("norm.weight", "q_weight", "k_weight")):
        view[...] = 1
    elif name.endswith("_base"):
        view[...] = np.concatenate((rng.standard_normal(8) * 0.5, np.eye(4).reshape(-1) * 3))
    elif name.endswith("_scale"):
        view[...] = 0.1
    elif name.endswith(("attn_sink", "confidence_head.proj.weight")):
        view[...] = 0
    else:
        deviation = {"embed.weight": 0.5, "head.weight": 0.02}.get(
            name, 0.1 if "engram.embed" in name else shape[-1] ** -0.5
        )
        if name.endswith(("wo_b.weight", "experts.w2", "shared_experts.w2.weight", "markov_head.head.weight")):
            deviation *= 0.4
        view[...] = rng.standard_normal(shape) * deviation


def initialise(views: dict[str, np.ndarray], seed: int):
    for i, (name, view) in enumerate(views.items()):
        fill(name, view, np.random.default_rng((seed, i)))
