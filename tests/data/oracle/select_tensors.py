#!/usr/bin/env python3
"""Makes this folder from a full set of recorded vectors: select_tensors.py SOURCE_FOLDER

Copies every file, without the tensors that no test reads (drafts, vectors of stale index keys, inner
values of attention that other tensors imply). What is kept is kept byte for byte.
"""
import json
import pathlib
import re
import shutil
import struct
import sys

SHAPES = ("micro", "odd", "thin")
# Left out of FILE: tensors whose whole name matches.
LEFT_OUT = {
    "official/{}.safetensors": r".*\.(draft|stale)\..*|.*\.indexer\.(score|selected|candidates)",
    # Queries and heads are read for the shortest prompt of `thin` and its first layer only.
    "official/{}.trace.safetensors":
        r".*\.attn\.qr|.*\.indexer\.(q|weights|score)|.*\.engram\.(kv|gate)|"
        r"(?!p3\.|p140r\.(decode\.\d\.)?layers\.0\.).*\.attn\.(q|heads)",
    # `after.` holds the same rows and the later ones.
    "hf/{}/trace_*.safetensors":
        r".*\.index_(query|scores)|layers\.\d+\.(rows|index_keys)|.*\.engram_gate",
}


def select(source: pathlib.Path, target: pathlib.Path, pattern: str) -> None:
    data = source.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    kept, body = {}, b""
    for name, entry in header.items():
        if name == "__metadata__":
            kept[name] = entry
        elif not re.fullmatch(pattern, name):
            begin, end = entry["data_offsets"]
            content = data[8 + length + begin:8 + length + end]
            kept[name] = {**entry, "data_offsets": [len(body), len(body) + len(content)]}
            body += content
    text = json.dumps(kept, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    target.write_bytes(struct.pack("<Q", len(text)) + text + body)


def main() -> None:
    source = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).parent
    plain = ["official/manifest.json", "official/quantizers.safetensors"]
    for shape in SHAPES:
        plain += [f"hf/{shape}/{name}"
                  for name in ("manifest.json", "wide.safetensors", "wide_noq.safetensors")]
    for name in plain:
        (here / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, here / name)
    for shape in SHAPES:
        for files, pattern in LEFT_OUT.items():
            for path in sorted(source.glob(files.format(shape))):
                select(path, here / path.relative_to(source), pattern)


if __name__ == "__main__":
    main()
