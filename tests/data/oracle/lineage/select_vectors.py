#!/usr/bin/env python3
"""Copies the part of a generation's recorded vectors that tests read: select_vectors.py SOURCE GENERATION...

SOURCE/GENERATION holds checkpoint/, vectors.safetensors and manifest.json. Written beside this script:
GENERATION/checkpoint/ and GENERATION/vectors.safetensors. Values are kept byte for byte; of logits of long
prompts that are not looked into, only some positions (pN.positions) are kept.
"""
import json
import pathlib
import re
import shutil
import struct
import sys

INSIDES = ("short", "medium")
# Insides that are compared. Residuals after a layer are kept for the short prompt only: where a medium
# prompt is off, its cache says from which layer on. Its windows say no more than its rows.
KEPT = re.compile(r"short\.(?!mtp).*|medium\.(cache\.(?!.*window).*|l\d+\.(router_ids|router_weights|index_ids))|"
                  r"rope\..*|p\d+\.(tokens|decode_tokens|decode_logits)")
WHOLE_LOGITS = 8  # positions; longer prompts keep so many, the first and the last among them


class Vectors:
    def __init__(self, path: pathlib.Path):
        data = path.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        self.header = json.loads(data[8:8 + length])
        self.body = data[8 + length:]

    def content(self, name: str) -> bytes:
        begin, end = self.header[name]["data_offsets"]
        return self.body[begin:end]


def some_positions(count: int) -> list[int]:
    if count <= WHOLE_LOGITS:
        return list(range(count))
    return sorted({i * (count - 1) // (WHOLE_LOGITS - 1) for i in range(WHOLE_LOGITS)})


def select(vectors: Vectors, manifest: dict) -> list[tuple[str, str, list[int], bytes]]:
    kept = []
    for name, entry in vectors.header.items():
        if name != "__metadata__" and KEPT.fullmatch(name):
            kept.append((name, entry["dtype"], entry["shape"], vectors.content(name)))
    for prompt in manifest["prompts"]:
        name, role = prompt["name"], prompt["role"]
        count, width = vectors.header[f"{name}.logits"]["shape"]
        positions = list(range(count)) if role in INSIDES else some_positions(count)
        logits = vectors.content(f"{name}.logits")
        rows = b"".join(logits[p * width * 4:(p + 1) * width * 4] for p in positions)
        kept.append((f"{name}.logits", "F32", [len(positions), width], rows))
        kept.append((f"{name}.positions", "I32", [len(positions)],
                     struct.pack(f"<{len(positions)}i", *positions)))
        if role in INSIDES:
            number = int(name.removeprefix("p"))
            kept.append((f"{role}.prompt", "I32", [1], struct.pack("<i", number)))
    return kept


def select_quantized(vectors: Vectors) -> list[tuple[str, str, list[int], bytes]]:
    """The vectors with quantizers of the memory (V4): logits of some positions of each prompt."""
    kept = []
    for name, entry in vectors.header.items():
        if name == "__metadata__":
            continue
        shape, content = entry["shape"], vectors.content(name)
        if re.fullmatch(r"p\d+\.logits", name):
            count, width = shape
            positions = some_positions(count)
            content = b"".join(content[p * width * 4:(p + 1) * width * 4] for p in positions)
            shape = [len(positions), width]
            kept.append((name.replace("logits", "positions"), "I32", [len(positions)],
                         struct.pack(f"<{len(positions)}i", *positions)))
        kept.append((name, entry["dtype"], shape, content))
    return kept


def write(target: pathlib.Path, tensors: list[tuple[str, str, list[int], bytes]]) -> None:
    header, body = {}, b""
    for name, dtype, shape, content in tensors:
        header[name] = {"dtype": dtype, "shape": shape,
                        "data_offsets": [len(body), len(body) + len(content)]}
        body += content
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    target.write_bytes(struct.pack("<Q", len(text)) + text + body)


def main() -> None:
    source = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).parent
    for generation in sys.argv[2:]:
        checkpoint = here / generation / "checkpoint"
        checkpoint.mkdir(parents=True, exist_ok=True)
        for path in sorted((source / generation / "checkpoint").iterdir()):
            shutil.copyfile(path, checkpoint / path.name)
        manifest = json.loads((source / generation / "manifest.json").read_text())
        vectors = Vectors(source / generation / "vectors.safetensors")
        write(here / generation / "vectors.safetensors", select(vectors, manifest))
        quantized = source / generation / "quantized.safetensors"
        if quantized.exists():
            write(here / generation / "quantized.safetensors", select_quantized(Vectors(quantized)))


if __name__ == "__main__":
    main()
