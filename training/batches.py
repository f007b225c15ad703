"""What a step of training sees: sequences, loss weights, decoder segments. Everything follows from (seed, stage,
step, process).
"""

import random
from dataclasses import dataclass

import numpy as np

from stages import SEGMENT, WINDOW, Stage

REPLAYED = 0.2  # weight of replayed tokens, whose windows are short


@dataclass
class Batch:
    ids: np.ndarray  # [B, T]
    weights: np.ndarray  # [B, T]
    answers: list[tuple]  # (row, start, end, messages since the fact or -1)
    starts: np.ndarray | None  # [B, S] decoder segments, or everything


def choose_starts(rng: random.Random, stage: Stage, answers, replies) -> list[int]:
    """Segments begin one window before an answer or a reply; most of them before an answer far from the beginning."""
    last = stage.length - WINDOW
    room = [x - WINDOW for x in replies if WINDOW <= x <= last] or [0]
    asked = [a[0] - WINDOW for a in answers if WINDOW <= a[0] <= last and a[0] > stage.length // 4]
    count = min(len(asked), stage.segments * 7 // 10)
    return sorted(rng.sample(asked, count) + rng.choices(room, k=stage.segments - count))


def make(source, stage: Stage, seed: int, step: int, rank: int) -> Batch:
    rng = random.Random(f"{seed}/{stage.name}/{step}/{rank}")
    whole = random.Random(f"{seed}/{stage.name}/{step}").random() < stage.whole
    ids, weights, answers, starts = [], [], [], []
    for row in range(stage.batch):
        profile = rng.choices(list(stage.mix), list(stage.mix.values()))[0]
        i, w, a, replies = source.sequence(rng, profile, stage.length, stage.weights)
        ids.append(i)
        weights.append(w)
        answers += [(row, *x) for x in a]
        if stage.segments and not whole:
            starts.append(choose_starts(rng, stage, a, replies))
    return Batch(np.array(ids, np.int64), np.array(weights, np.float32), answers, np.array(starts) if starts else None)


def targets(batch: Batch, rows: slice):
    """Wanted tokens and loss weights of the decoder's tokens, flat."""
    ids, weights = batch.ids[rows], batch.weights[rows]
    wanted = np.roll(ids, -1, 1)
    w = np.concatenate((weights[:, 1:], np.zeros((len(ids), 1), np.float32)), 1)
    if batch.starts is not None:
        position = (batch.starts[rows][:, :, None] + np.arange(SEGMENT)).reshape(len(ids), -1)
        wanted, w = np.take_along_axis(wanted, position, 1), np.take_along_axis(w, position, 1)
        w.reshape(len(ids), -1, SEGMENT)[:, :, : WINDOW - 1] *= REPLAYED
    return wanted.reshape(-1).astype(np.int32), np.ascontiguousarray(w.reshape(-1))


def score(batch: Batch, rows: slice, likeliest: np.ndarray) -> dict[str, np.ndarray]:
    """Whole answers that greedy decoding would give: (right, all), by the distance between fact and question."""
    out = {}
    first, count = rows.start, likeliest.shape[1]
    for row, low, high, since in batch.answers:
        if not rows.start <= row < rows.stop:
            continue
        at = low - 1
        if batch.starts is not None:
            where = np.flatnonzero(batch.starts[row] == low - WINDOW)
            if not len(where) or high - low > SEGMENT - WINDOW:
                continue
            at = int(where[0]) * SEGMENT + WINDOW - 1
        if at + high - low > count:
            continue
        right = bool((likeliest[row - first, at : at + high - low] == batch.ids[row, low:high]).all())
        key = "unknown" if since < 0 else "near" if since < 20 else "far" if since < 60 else "farthest"
        out[key] = out.get(key, np.zeros(2, int)) + (right, 1)
    return out
