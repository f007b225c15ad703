#!/usr/bin/env python3
"""Makes tiny.gguf and tiny.json with the Python package gguf (0.19.0, numpy 2.4.6): make_tiny.py

A model of two layers whose tensors have every number format that is read. tiny.json holds, per tensor as it
lies in the file, the sha256 of its values as that package decodes them (float32, little-endian).
"""
import hashlib
import json
import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as T

HIDDEN, HEADS, KV_HEADS, HEAD_DIM, FFN, LAYERS = 256, 4, 2, 32, 32, 2
K_BLOCKS = {T.Q4_K: (144, [0, 2]), T.Q5_K: (176, [0, 2]), T.Q6_K: (210, [208])}
random = np.random.default_rng(20)


def bytes_to_unicode() -> list[str]:
    kept = list(range(33, 127)) + list(range(161, 173)) + list(range(174, 256))
    spelled, extra = {}, 0
    for byte in range(256):
        spelled[byte] = chr(byte) if byte in kept else chr(256 + extra)
        extra += byte not in kept
    return [spelled[byte] for byte in range(256)]


def stored(rows: int, columns: int, kind: T) -> np.ndarray:
    if kind in K_BLOCKS:
        size, scales = K_BLOCKS[kind]
        blocks = random.integers(0, 256, (rows, columns // 256, size), dtype=np.uint8)
        for at in scales:  # float16, both signs, down to denormals
            values = random.normal(0, 1e-4, blocks.shape[:2]).astype(np.float16)
            blocks[..., at:at + 2] = values.view(np.uint8).reshape(*values.shape, 2)
        return blocks.reshape(rows, -1)
    values = random.normal(0, 0.05, (rows, columns)).astype(np.float32)
    if kind == T.F32:
        return values
    if kind == T.F16:
        return values.astype(np.float16)
    return gguf.quants.quantize(values, kind)


def main() -> None:
    here = pathlib.Path(__file__).parent
    letters = bytes_to_unicode()
    merges = [("t", "h"), ("th", "e"), (letters[32], "the"), ("i", "n"), ("1", "2")]
    tokens = letters + ["".join(merge) for merge in merges] + ["<|im_start|>", "<|im_end|>", "<user>"]
    types = [1] * (256 + len(merges)) + [3, 3, 4]
    vocabulary = len(tokens)

    writer = gguf.GGUFWriter(here / "tiny.gguf", "llama")
    writer.add_context_length(512)
    writer.add_embedding_length(HIDDEN)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(FFN)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD_DIM)
    writer.add_value_length(HEAD_DIM)
    writer.add_rope_dimension_count(HEAD_DIM)
    writer.add_rope_freq_base(100000.0)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types(types)
    writer.add_token_merges([" ".join(merge) for merge in merges])
    writer.add_bos_token_id(vocabulary - 3)
    writer.add_eos_token_id(vocabulary - 2)

    plan = [("token_embd.weight", vocabulary, HIDDEN, T.Q4_K), ("output_norm.weight", 0, HIDDEN, T.F32)]
    kinds = [[T.Q4_0, T.Q4_1, T.Q5_0, T.Q8_0, T.Q6_K, T.Q5_K, T.Q5_1],
             [T.F16, T.BF16, T.F32, T.Q4_0, T.Q4_K, T.Q8_0, T.Q4_1]]
    for layer in range(LAYERS):
        q, k, v, o, gate, up, down = kinds[layer]
        plan += [(f"blk.{layer}.{name}.weight", rows, columns, kind) for name, rows, columns, kind in (
            ("attn_norm", 0, HIDDEN, T.F32), ("ffn_norm", 0, HIDDEN, T.F32),
            ("attn_q", HEADS * HEAD_DIM, HIDDEN, q), ("attn_k", KV_HEADS * HEAD_DIM, HIDDEN, k),
            ("attn_v", KV_HEADS * HEAD_DIM, HIDDEN, v), ("attn_output", HIDDEN, HEADS * HEAD_DIM, o),
            ("ffn_gate", FFN, HIDDEN, gate), ("ffn_up", FFN, HIDDEN, up), ("ffn_down", HIDDEN, FFN, down))]
    digests = {}
    for name, rows, columns, kind in plan:
        data = stored(max(rows, 1), columns, kind)
        if kind in (T.F32, T.F16):
            values = data.astype(np.float32)
        else:
            values = gguf.quants.dequantize(data, kind)
        digests[name] = {"type": kind.name, "rows": max(rows, 1), "columns": columns,
                         "sha256": hashlib.sha256(values.astype("<f4").tobytes()).hexdigest()}
        writer.add_tensor(name, data if rows else data[0], raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    (here / "tiny.json").write_text(json.dumps(digests, indent=1) + "\n")


if __name__ == "__main__":
    main()
