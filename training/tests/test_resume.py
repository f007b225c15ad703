"""A stage that was interrupted and goes on ends with the bits of one that ran through."""

import dataclasses
import json

import numpy as np
import pytest
from tokenizers import Tokenizer

import make
import state
import train
from stages import STAGES


@pytest.fixture(scope="module")
def tokenizer(vocabulary_folder):
    return Tokenizer.from_file(str(vocabulary_folder / "tokenizer.json"))


@pytest.mark.parametrize("name", ["seed", "indexer"])
def test_resumed_equals_unbroken(tokenizer, tmp_path, name):
    stage = next(s for s in STAGES if s.name == name)
    stage = dataclasses.replace(
        stage, length=256 if stage.segments else 64, batch=2, steps=5, together=2, segments=min(stage.segments, 2)
    )
    start = make.first_weights(tokenizer, 0)
    results = {}
    for kind, stops in (("unbroken", [99]), ("resumed", [2, 3, 99])):
        folder = tmp_path / kind
        folder.mkdir()
        for stop in stops:
            train.train(stage, tokenizer, folder, start, every=2, stop_at=stop)
            assert (folder / "running.npz").exists() == (stop < 99)
        results[kind] = state.read(folder / f"{name}.npz")
    for key, want in results["unbroken"].items():
        assert (results["resumed"][key] == want).all(), key
    moved = results["unbroken"]["weights"] != start["weights"]
    text, hashes = state.describe(tokenizer)
    for tensor, changed in state.layout_of(text, hashes).views(moved).items():
        assert changed.any() == train.learns(tensor, stage), tensor


def test_running_state_of_another_stage_is_not_used(tokenizer, tmp_path):
    stage = dataclasses.replace(STAGES[0], batch=2, steps=3, together=2)
    start = make.first_weights(tokenizer, 0)
    train.train(stage, tokenizer, tmp_path, start, every=1, stop_at=2)
    train.train(dataclasses.replace(stage, name="other"), tokenizer, tmp_path, start, every=1)
    steps = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [s["step"] for s in steps if s["stage"] == "other"] == [1, 2, 3]


def test_state_is_written_whole(tmp_path):
    path = tmp_path / "a.npz"
    state.write(path, x=np.arange(3))
    state.write(path, x=np.arange(4))
    assert len(state.read(path)["x"]) == 4 and not path.with_suffix(".part").exists()
