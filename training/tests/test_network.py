"""The trainer's forward and backward pass against the plain torch model; the exported checkpoint against both and
against the engine.
"""

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from tokenizers import Tokenizer

import checkpoint
import config
import export
import initial
import model
import state
from network import Network
from rotary import rope_tables
from weights import Weights


@pytest.fixture(scope="module")
def tokenizer(vocabulary_folder):
    return Tokenizer.from_file(str(vocabulary_folder / "tokenizer.json"))


def lively(tokenizer):
    """Weights with which every part matters."""
    text, hashes = state.describe(tokenizer)
    layout, rng = state.layout_of(text, hashes), np.random.default_rng(1)
    w = Weights(layout, np.zeros(layout.size, np.float32), np.zeros(layout.size, np.float32))
    initial.initialise(w.master, 0)
    for name, view in w.master.items():
        if name.endswith("_scale"):
            view[...] = 0.5
        elif name.endswith("attn_sink"):
            view[...] = rng.standard_normal(view.shape)
    bias = {n: rng.standard_normal(8).astype(np.float32) * 0.05 for n in config.bias_names(text)}
    return text, hashes, w, bias


def both(tokenizer):
    text, hashes, w, bias = lively(tokenizer)
    net = Network(text, hashes, w, bias, rope_tables(text, 256))
    ref = model.Mini(text, hashes).load({k: v.copy() for k, v in w.master.items()}, bias)
    return net, ref


@torch.no_grad()
def smooth_ids(ref):
    """Tokens at which no Engram gate is near the square root's infinite slope: rounding would decide there."""
    for seed in range(100):
        ids, ref.trace = np.random.default_rng(seed).integers(3, 1500, (2, 192)), {}
        ref.forward(torch.from_numpy(ids))
        dots, ref.trace = [t for name, t in ref.trace.items() if name.endswith("engram.dot")], None
        if min(float(t.abs().min()) for t in dots) > 5e-4:
            return ids
    raise AssertionError("every draw has a gate near zero")


IDS = np.random.default_rng(2).integers(3, 1500, (2, 192))
STARTS = np.array([[0, 32, 100], [32, 70, 128]])


@pytest.mark.parametrize("starts, sparse", [(None, False), (STARTS, False), (None, True), (STARTS, True)])
def test_gradients_of_all_weights(tokenizer, starts, sparse):
    net, ref = both(tokenizer)
    net.sparse = ref.sparse = sparse
    ids = smooth_ids(ref)
    for t in ref.w.values():
        t.requires_grad_(True)
    net.w.refresh(False)
    s = net.forward(ids, starts, 64)
    want = ref.forward(torch.from_numpy(ids), None if starts is None else torch.from_numpy(starts), 64)
    head = net.w.value["head.weight"]
    assert np.abs(s.h @ head.T - want.detach().numpy()).max() < 2e-5
    slope = np.random.default_rng(3).standard_normal(want.shape).astype(np.float32)
    net.backward(s, slope @ head)
    (want * torch.from_numpy(slope)).sum().backward()
    for name, t in ref.w.items():
        if name != "head.weight" and ".indexer." not in name:
            assert t.grad is not None and t.grad.norm() > 0, name
            distance = np.linalg.norm(net.w.grad[name] - t.grad.numpy()) / float(t.grad.norm())
            assert distance < 5e-3, (name, distance)
        elif ".indexer." in name:
            assert not net.w.grad[name].any()


def test_quantized_forward(tokenizer):
    """Roundings amplify the last bits from layer to layer, so only the first layers can be compared tightly."""
    net, ref = both(tokenizer)
    net.quantize, ref.quant, ref.trace = True, {"weights", "acts", "cache"}, {}
    net.w.refresh(True)
    s = net.forward(IDS)
    with torch.no_grad():
        ref.forward(torch.from_numpy(IDS))
    for i, most in ((0, 1e-5), (1, 1e-2), (2, 3e-2)):
        for got, name in (
            (s.layers[i].attention.k, "attn.window_rows"),
            (s.layers[i].attn.y, "attn.out"),
            (s.layers[i].ffn.y, "ffn.out"),
        ):
            want = ref.trace[f"layers.{i}.{name}"].numpy().reshape(got.shape)
            assert np.linalg.norm(got - want) < most * np.linalg.norm(want), (i, name)
    rows, want = s.layers[2].rows.rows, ref.trace["layers.2.attn.main_rows"].numpy().reshape(-1, 64)
    assert np.linalg.norm(rows - want) < 2e-2 * np.linalg.norm(want)


def exported(tokenizer, vocabulary_folder, folder):
    _, _, w, bias = lively(tokenizer)
    w.master["head.weight"][...] *= 10
    source = folder / "last.npz"
    state.write(source, weights=w.flat, bias=np.stack(list(bias.values())))
    target = folder / "mini"
    target.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (target / name).write_bytes((vocabulary_folder / name).read_bytes())
    export.export(source, target)  # compares the logits of both bit by bit
    return source, target


def test_checkpoint_is_read_back_equal(tokenizer, vocabulary_folder, tmp_path):
    source, target = exported(tokenizer, vocabulary_folder, tmp_path)
    net, back = state.reference(source, tokenizer), checkpoint.read(target, tokenizer)
    for name, t in net.w.items():
        kernel = checkpoint.kernel_of(name)
        assert torch.equal(back.w[name], net.q(t, kernel, "weights") if kernel else t), name
    assert all(torch.equal(back.bias[k], v) for k, v in net.bias.items())
    assert sum(f.stat().st_size for f in target.iterdir()) < 12e6


def traced(locket, model, ids, mode, folder):
    (folder / "ids.json").write_text(json.dumps(list(ids)))
    subprocess.run(
        [
            locket,
            "trace",
            model,
            "--ids",
            folder / "ids.json",
            "-o",
            folder / "trace.safetensors",
            "--what",
            "logits",
            "--mode",
            mode,
            "--replay",
            "full",
            "--threads",
            "1",
        ],
        check=True,
        capture_output=True,
    )
    with safe_open(folder / "trace.safetensors", "pt") as f:
        return f.get_tensor("logits").float()


@torch.no_grad()
def test_engine_computes_the_same_in_float32(locket, tokenizer, vocabulary_folder, tmp_path):
    _, target = exported(tokenizer, vocabulary_folder, tmp_path)
    got, want = traced(locket, target, IDS[0].tolist(), "wide", tmp_path), checkpoint.read(
        target, tokenizer, "wide"
    ).forward(torch.from_numpy(IDS[:1]))
    distance = (got - want).norm(dim=1) / want.norm(dim=1)
    # Up to token 64 every row is chosen; later two rows may score so alike that the last bit chooses between them.
    assert float(distance[:64].max()) < 1e-4 and float(distance.median()) < 1e-5
    assert float((distance > 1e-4).float().mean()) < 0.3


@torch.no_grad()
def test_engine_rounds_as_the_reference(locket, tmp_path):
    """On the model that ships: with all roundings single values differ, the likeliest tokens do not."""
    mini = Path(__file__).resolve().parents[2] / "models/mini"
    tokenizer = Tokenizer.from_file(str(mini / "tokenizer.json"))
    words = "My cat is called Milo. What is my cat called? Your cat is called Milo. Hello! How are you today? "
    ids = ([0] + tokenizer.encode(words * 8).ids)[:224]
    got, want = traced(locket, mini, ids, "reference", tmp_path), checkpoint.read(mini, tokenizer).forward(
        torch.tensor([ids])
    )
    assert float((got - want).norm() / want.norm()) < 0.1
    assert float((got.argmax(1) == want.argmax(1)).float().mean()) > 0.97
