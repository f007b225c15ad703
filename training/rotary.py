"""Rotary tables: frequencies formed in float32 steps, as the official code forms them."""

import math

import numpy as np


def rope_frequencies(text: dict, compressed: bool) -> np.ndarray:
    """float32 in every step, as the official code forms them."""
    rot = text["qk_rope_head_dim"]
    base = text["compress_rope_theta"] if compressed else text["rope_theta"]
    exponent = (np.arange(0, rot, 2, dtype=np.float32) / np.float32(rot)).astype(np.float64)
    f = np.float32(1) / (float(base) ** exponent).astype(np.float32)
    if not compressed:
        return f
    y = text["rope_scaling"]

    def dimension(rotations):
        return rot * math.log(y["original_max_position_embeddings"] / (rotations * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(dimension(y["beta_fast"])), 0)
    high = min(math.ceil(dimension(y["beta_slow"])), rot - 1)
    ramp = np.clip((np.arange(rot // 2, dtype=np.float32) - low) / np.float32(max(high - low, 0.001)), 0, 1).astype(
        np.float32
    )
    return f * (1 - ramp) + f / np.float32(y["factor"]) * ramp


def rope_tables(text: dict, positions: int) -> dict[bool, tuple[np.ndarray, np.ndarray]]:
    """cosine and sine [positions, rot / 2] of the plain and of the stretched frequencies."""
    out = {}
    for compressed in (False, True):
        angle = np.arange(positions, dtype=np.float32)[:, None] * rope_frequencies(text, compressed)
        out[compressed] = tuple(f(angle.astype(np.float64)).astype(np.float32) for f in (np.cos, np.sin))
    return out
