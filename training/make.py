"""Makes the small model from nothing: tokenizer, stages, drafts, checkpoint, examination, figures. Goes on where it
was interrupted.

python make.py FOLDER [--scale 0.02]    FOLDER/mini is the checkpoint; states and log.jsonl lie beside it
"""

import argparse
import dataclasses
import json
import os
import subprocess
import sys
import time
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}  # one thread for each of the two processes

import numpy as np  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

import initial  # noqa: E402
import plot  # noqa: E402
import state  # noqa: E402
import train  # noqa: E402
from stages import STAGES, Stage  # noqa: E402

HERE = Path(__file__).parent
EVERY = 25  # steps between two lines of the log, and between two states on disk


def scaled(scale: float) -> list[Stage]:
    return [dataclasses.replace(s, steps=max(3, round(s.steps * scale))) for s in STAGES]


def first_weights(tokenizer, seed: int) -> dict[str, np.ndarray]:
    text, hashes = state.describe(tokenizer)
    layout = state.layout_of(text, hashes)
    weights = np.zeros(layout.size, np.float32)
    initial.initialise(layout.views(weights), seed)
    return {"weights": weights, "bias": np.zeros((text["num_hidden_layers"], text["n_routed_experts"]), np.float32)}


class Clock:
    """Seconds of every part. Those of a stage are in the lines of its log, so that an interruption loses none."""

    def __init__(self, path: Path):
        self.path = path
        self.seconds = json.loads(path.read_text()) if path.exists() else {}

    def run(self, name: str, done: Path, work):
        """Does a part unless its result is there."""
        if done.exists():
            return
        began = time.time()
        work()
        self.keep(name, time.time() - began)

    def keep(self, name: str, seconds: float):
        self.seconds[name] = round(seconds, 1)
        self.path.write_text(json.dumps(self.seconds, indent=1) + "\n")


def python(*arguments):
    subprocess.run([sys.executable, *map(str, arguments)], cwd=HERE, check=True)


def run_stages(folder: Path, stages: list[Stage], tokenizer, seed: int, clock: Clock) -> Path:
    before = None
    for i, stage in enumerate(stages):
        later = sum(s.tokens for s in stages[i + 1 :])

        def work(stage=stage, before=before, later=later):
            start = first_weights(tokenizer, seed) if before is None else state.read(before)
            every = max(1, min(EVERY, stage.steps // 4))
            train.train(stage, tokenizer, folder, start, seed, every, later)

        clock.run(stage.name, folder / f"{stage.name}.npz", work)
        lines = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
        clock.keep(stage.name, sum(line["seconds"] for line in lines if line["stage"] == stage.name))
        before = folder / f"{stage.name}.npz"
    return before


def finish(folder: Path, last: Path, tokenizer, args, clock: Clock):
    """Drafts, checkpoint, examination, figures: these need torch, which the stages do not."""
    import export
    import train_drafts

    model = folder / "mini"

    def draft():
        drafter = train_drafts.train(tokenizer, last, folder, args.seed, max(3, round(train_drafts.STEPS * args.scale)))
        figures = train_drafts.acceptance(drafter, tokenizer, batches=10 if args.scale == 1 else 1)
        (folder / "drafts.json").write_text(json.dumps(figures) + "\n")

    clock.run("drafts", folder / "drafts.json", draft)
    clock.run("export", model / "model.safetensors.index.json", lambda: print(export.export(last, model), flush=True))
    few = [] if args.scale == 1 else ["--count", 2, "--passes", 2]
    clock.run(
        "examination",
        model / "recall.json",
        lambda: python("evaluate.py", model.resolve(), "--write", (model / "recall.json").resolve(), *few),
    )
    plot.draw(folder / "log.jsonl", folder / "training.svg")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--scale", type=float, default=1.0, help="share of the steps of every stage; below 1 a rehearsal"
    )
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    model = args.folder / "mini"
    model.mkdir(parents=True, exist_ok=True)
    clock, stages = Clock(args.folder / "seconds.json"), scaled(args.scale)
    print(f"{sum(s.tokens for s in stages) / 1e6:.1f} million tokens in {len(stages)} stages", flush=True)
    clock.run("tokenizer", model / "tokenizer.json", lambda: python("vocabulary.py", model.resolve()))
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    last = run_stages(args.folder, stages, tokenizer, args.seed, clock)
    finish(args.folder, last, tokenizer, args, clock)
    print(
        f"done: {model}, {sum(clock.seconds.values()) / 60:.0f} minutes;",
        (args.folder / "drafts.json").read_text().strip(),
    )


if __name__ == "__main__":
    main()
