"""The fake quantizers and the stored codes against the project's recorded vectors, which the engine is tested with
too.
"""

from pathlib import Path

import pytest
import torch
from safetensors import safe_open

import checkpoint
from native import fake

VECTORS = Path(__file__).resolve().parents[2] / "tests/data/oracle/official/quantizers.safetensors"


@pytest.fixture(scope="module")
def vectors():
    with safe_open(VECTORS, "pt") as f:
        return {k: f.get_tensor(k) for k in f.keys() if k.startswith("fp")}


@pytest.mark.parametrize(
    "kernel, name", [("fp8_rows", "fp8"), ("fp4_rows", "fp4_index"), ("fp4_main_rows", "fp4_main")]
)
def test_values(vectors, kernel, name):
    x, y = vectors[name + ".x"].float(), vectors[name + ".y"].float()
    got = torch.from_numpy(fake(kernel, x.contiguous().numpy()))
    assert torch.equal(got.bfloat16().float(), y)


def test_stored_fp8_codes(vectors):
    q, scale = checkpoint.encode_fp8(vectors["fp8.x"].float(), 1)
    assert torch.equal(q.view(torch.uint8), vectors["fp8.codes"])
    assert torch.equal(scale.view(torch.uint8), vectors["fp8.scales"])


def test_stored_fp4_codes(vectors):
    q, scale = checkpoint.encode_fp4(vectors["fp4_index.x"].float())
    assert torch.equal(checkpoint.decode_fp4(q, scale).bfloat16(), vectors["fp4_index.y"])
    assert torch.equal(scale.view(torch.uint8), vectors["fp4_index.scales"])


def test_weights_are_rounded_as_they_are_stored():
    w = torch.randn(96, 128, generator=torch.Generator().manual_seed(0)) * torch.logspace(-3, 3, 96)[:, None]
    assert torch.equal(
        checkpoint.decode_fp8(*checkpoint.encode_fp8(w, 32)), torch.from_numpy(fake("fp8_tiles", w.numpy()))
    )
    assert torch.equal(
        checkpoint.decode_fp8(*checkpoint.encode_fp8(w, 1)), torch.from_numpy(fake("fp8_rows", w.numpy()))
    )
    assert torch.equal(checkpoint.decode_fp4(*checkpoint.encode_fp4(w)), torch.from_numpy(fake("fp4_rows", w.numpy())))
