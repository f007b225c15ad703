"""The curriculum: what every stage sees, for how many steps."""

from dataclasses import dataclass, field

DRILL = dict(control=0.05, user=0.1, reply=0.3, answer=2.0, first=2.0, value=10.0)
TALK = dict(control=0.1, user=0.2, reply=1.0, answer=4.0, first=8.0, value=6.0)
PROCESSES = 2
WINDOW, SEGMENT = 32, 64


@dataclass(frozen=True)
class Stage:
    name: str
    length: int  # tokens of a sequence
    batch: int  # sequences of a step, per process
    steps: int
    rate: float
    mix: dict[str, float]  # share of every profile of profiles.py
    weights: dict[str, float] = field(default_factory=lambda: TALK)
    novelty: float = 0.5  # share of made-up values
    easy: bool = False  # one-token values only
    segments: int = 0  # decoder segments of a sequence; 0: the decoder sees everything
    whole: float = 0.0  # share of steps in which it does all the same
    quantized: bool = False
    sparse: bool = False
    indexer: bool = False  # only the indexers learn, from where the dense attention looked
    together: int = 8  # sequences that run at once

    @property
    def tokens(self) -> int:
        return self.length * self.batch * PROCESSES * self.steps


TALKS = {"mixed": 0.25, "chat": 0.3, "changed": 0.15, "system": 0.1, "thinking": 0.1, "tools": 0.1}
LONG_TALKS = {"mixed": 0.15, "chat": 0.25, "long": 0.35, "changed": 0.1, "thinking": 0.05, "tools": 0.1}
DENSE = {"drill": 0.45, "mixed": 0.25, "changed": 0.2, "system": 0.1}
# Of stages that read chosen rows only.
CHOOSING = dict(novelty=0.8, segments=24, whole=0.05, quantized=True, sparse=True, together=1)
INDEXER = dict(segments=10, quantized=True, indexer=True, together=1)

# fmt: off
STAGES = [
    Stage("seed", 64, 16, 400, 2e-3, {"drill": 1.0}, DRILL, 0.3, easy=True, together=16),
    Stage("drill", 96, 12, 1400, 2e-3, {"drill": 0.85, "changed": 0.15}, DRILL, 0.6, together=12),
    Stage("short", 192, 12, 400, 1.5e-3, {"drill": 0.4, "mixed": 0.3, "chat": 0.15, "changed": 0.15}, together=6),
    Stage("middle", 384, 8, 400, 1e-3, {"drill": 0.25, "mixed": 0.35, "chat": 0.25, "changed": 0.15}, together=4),
    Stage("dense", 256, 16, 900, 1.2e-3, DENSE, novelty=0.7, quantized=True, together=4),
    Stage("long", 768, 8, 300, 5e-4, TALKS, novelty=0.7, segments=8, whole=0.1, quantized=True, together=2),
    Stage("quantized", 1280, 6, 250, 4e-4, TALKS, novelty=0.7, segments=12, whole=0.1, quantized=True, together=1),
    Stage("indexer", 2048, 2, 120, 3e-3, {"mixed": 0.4, "chat": 0.3, "long": 0.3}, novelty=0.7, **INDEXER),
    Stage("sparse", 4096, 2, 150, 3e-4, LONG_TALKS, **CHOOSING),
    Stage("dense-2", 256, 24, 700, 1e-3, DENSE, novelty=0.8, quantized=True, together=4),
    Stage("quantized-2", 1280, 6, 200, 4e-4, TALKS, novelty=0.8, segments=12, whole=0.1, quantized=True, together=1),
    Stage("indexer-2", 4096, 1, 120, 3e-3, {"mixed": 0.3, "chat": 0.3, "long": 0.4}, novelty=0.8, **INDEXER),
    Stage("sparse-2", 4096, 2, 250, 4e-4, LONG_TALKS, **CHOOSING),
]
