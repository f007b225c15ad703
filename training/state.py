"""States of training on disk: flat arrays, written so that a killed run leaves the old file or the new one, never
half of one.
"""

import os
from pathlib import Path

import numpy as np

import config
import engram
from weights import Layout


def layout_of(text: dict, hashes) -> Layout:
    return Layout(config.shapes(text, hashes.rows))


def describe(tokenizer) -> tuple[dict, engram.Hash]:
    """The config with the sizes that follow from the tokenizer, and Engram's constants."""
    text = config.text_config()
    hashes = engram.Hash(text, tokenizer)
    text["engram_num_embeddings"], text["engram_compressed_vocab_size"] = hashes.rows, hashes.classes
    return text, hashes


def write(path: Path, **arrays):
    part = path.with_suffix(".part")
    with open(part, "wb") as f:
        np.savez(f, **arrays)
        f.flush()
        os.fsync(f.fileno())
    os.replace(part, path)


def read(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as f:
        return {k: f[k] for k in f.files}


def reference(path: Path, tokenizer, quantized: bool = True, sparse: bool = True):
    """A state as a model in plain torch: `model.Mini`."""
    import model

    text, hashes = describe(tokenizer)
    kept = read(path)
    names = config.bias_names(text)
    net = model.Mini(text, hashes).load(layout_of(text, hashes).views(kept["weights"]), dict(zip(names, kept["bias"])))
    net.quant = {"weights", "acts", "cache"} if quantized else set()
    net.sparse = sparse
    return net
