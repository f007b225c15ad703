"""The draft layer: what it may see, what training and guessing have in common, and its export."""

import json
import subprocess

import numpy as np
import pytest
import torch
from safetensors import safe_open
from tokenizers import Tokenizer

import config
import drafts
import export
import make
import state
import train_drafts
from encoder import Encoder
from profiles import Source
from stages import SEGMENT, WINDOW


@pytest.fixture(scope="module")
def tokenizer(vocabulary_folder):
    return Tokenizer.from_file(str(vocabulary_folder / "tokenizer.json"))


@pytest.fixture
def source(tokenizer, tmp_path):
    path = tmp_path / "last.npz"
    state.write(path, **make.first_weights(tokenizer, 0))
    return path


def inputs(net, seed=0):
    g = torch.Generator().manual_seed(seed)
    taps, position = torch.randn(1, SEGMENT, 384, generator=g), torch.arange(SEGMENT)[None] + 100
    ring = drafts.main_rows(net, taps, position)[:, 5 : 5 + WINDOW]
    return torch.tensor([17]), torch.tensor([100 + 5 + WINDOW]), ring, torch.ones(1, WINDOW, dtype=torch.bool)


@torch.no_grad()
def test_guesses_are_those_that_training_scores(tokenizer, source):
    net = train_drafts.Drafter(train_drafts.Backbone(source, tokenizer), 0).net
    token, position, ring, seen = inputs(net)
    guessed = drafts.guess(net, token, position, ring, seen)
    ids = torch.full((1, 5), net.c["dspark_noise_token_id"])
    ids[0, 0] = token
    h = drafts.hidden(net, ids, position[:, None] + torch.arange(5), ring, seen)
    before = torch.cat((token, guessed[0, :-1]))
    assert torch.equal((drafts.logits(net, h) + drafts.markov(net, before)[0]).argmax(-1), guessed[0])
    assert drafts.confidence(net, h, drafts.markov(net, before)[1]).shape == (5,)


@torch.no_grad()
def test_rows_that_are_not_there_change_nothing(tokenizer, source):
    net = train_drafts.Drafter(train_drafts.Backbone(source, tokenizer), 0).net
    token, position, ring, seen = inputs(net)
    seen[0, :4] = False
    ids = torch.tensor([[17, 2, 2, 2, 2]])
    where = position[:, None] + torch.arange(5)
    first = drafts.hidden(net, ids, where, ring, seen)
    changed = ring.clone()
    changed[0, :4] += 1
    assert torch.equal(first, drafts.hidden(net, ids, where, changed, seen))
    changed[0, 4] += 1
    assert not torch.equal(first, drafts.hidden(net, ids, where, changed, seen))
    other = ids.clone()
    other[0, 4] = 40  # the block is read in both directions
    assert not torch.equal(first[0], drafts.hidden(net, other, where, ring, seen)[0])


def test_training_learns_and_leaves_the_backbone_alone(tokenizer, source):
    drafter = train_drafts.Drafter(train_drafts.Backbone(source, tokenizer), 0)
    talk, losses = Source(Encoder(tokenizer), 0.7), []
    backbone = {k: v.clone() for k, v in drafter.net.w.items() if not k.startswith("mtp.")}
    for _ in range(6):
        loss = drafter.loss(*train_drafts.draw(talk, 0, "test", 0, 2))
        losses.append(loss.item())
        loss.backward()
        drafter.update(len(losses), 100)
    assert losses[-1] < losses[0] - 0.3, losses
    assert all(torch.equal(drafter.net.w[k], v) for k, v in backbone.items())
    figures = train_drafts.acceptance(drafter, tokenizer, batches=1)
    assert figures["block"] == 5 and 0 <= figures["accepted_per_pass"] <= 5


def test_export_has_the_released_names(locket, tokenizer, source, vocabulary_folder, tmp_path):
    drafter = train_drafts.Drafter(train_drafts.Backbone(source, tokenizer), 0)
    state.write(
        tmp_path / "drafts.npz", **drafter.layout.views(drafter.flat), **{drafts.BIAS: np.zeros(8, np.float32)}
    )
    target = tmp_path / "mini"
    target.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (target / name).write_bytes((vocabulary_folder / name).read_bytes())
    export.export(source, target)
    where = json.loads((target / "model.safetensors.index.json").read_text())["weight_map"]
    assert {where[k] for k in where if k.startswith("mtp.")} == {"model-00003-of-00003.safetensors"}
    c, dtypes = config.text_config(), {}
    with safe_open(target / "model-00003-of-00003.safetensors", "pt") as f:
        shapes = {k: tuple(f.get_slice(k).get_shape()) for k in f.keys()}
        dtypes = {k: f.get_slice(k).get_dtype() for k in f.keys()}
    assert shapes["mtp.0.main_proj.weight"] == (128, 384) and dtypes["mtp.0.main_proj.scale"] == "F8_E8M0"
    assert shapes["mtp.0.markov_head.head.weight"] == (c["vocab_size"], 32) and dtypes["mtp.0.norm.weight"] == "BF16"
    assert shapes["mtp.0.confidence_head.proj.weight"] == (1, 160) and "mtp.0.ffn.experts.7.w2.weight" in shapes
    assert "mtp.0.ffn.gate.bias_vl" in shapes
    assert json.loads((target / "config.json").read_text())["text_config"]["num_nextn_predict_layers"] == 1
    subprocess.run([locket, "inspect", target], check=True, capture_output=True)
    subprocess.run([locket, "run", target, "-p", "Hello!", "--max-tokens", "4"], check=True, capture_output=True)
