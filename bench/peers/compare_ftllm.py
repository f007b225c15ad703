"""The same checkpoint in Locket and in fastllm, by turns: tokens a second and their ratios."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORDS = "the cat sat on a mat and saw the old house near the river".split()


def prompt_text(words, turn):
    """Another text each turn, so that no engine can use what it remembers."""
    return " ".join([f"Turn {turn}."] + [WORDS[(i * 7 + turn) % len(WORDS)] for i in range(words)])


def run_json(command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed with {done.returncode}: {done.stderr.strip()[-300:]}")
    return json.loads(done.stdout)


class Locket:
    def __init__(self, options):
        self.options = options
        self.program = str(ROOT / "build/release/locket")

    def ids(self, text):
        request = json.dumps({"messages": [{"role": "user", "content": text}]})
        tokenizer = ["--tokenizer", str(Path(self.options.model) / "tokenizer.json")]
        return run_json([self.program, "render", *tokenizer], request)["ids"]

    def run(self, text):
        result = run_json([self.program, "run", self.options.model, "-p", text, "--json",
                           "--memory", "off", "--threads", str(self.options.threads),
                           "--max-tokens", str(self.options.tokens)])
        timings = result["timings"]
        return {"prompt": result["prompt_tokens"] / timings["prompt_seconds"],
                "answer": timings["tokens_per_second"], "tokens": result["completion_tokens"],
                "load_s": timings["load_seconds"]}


class Fastllm:
    def __init__(self, options):
        read, write = os.pipe()
        # It writes a file of its own into the folder that it loads.
        self.folder = tempfile.TemporaryDirectory()
        for path in Path(options.model).resolve().iterdir():
            (Path(self.folder.name) / path.name).symlink_to(path)
        command = [sys.executable, str(HERE / "ftllm_worker.py"), self.folder.name,
                   str(options.threads)]
        self.options = options
        self.worker = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3>&{write} {write}>&-', "bash", *command],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            text=True, pass_fds=[write])
        os.close(write)
        self.results = os.fdopen(read)
        self.load_s = self.next()["load_s"]

    def next(self):
        line = self.results.readline()
        if not line:
            sys.exit("fastllm ended without an answer; run ftllm_worker.py by hand to see why")
        return json.loads(line)

    def run(self, ids):
        self.worker.stdin.write(json.dumps({"ids": ids, "tokens": self.options.tokens}) + "\n")
        self.worker.stdin.flush()
        result = self.next()
        later = max(1, result["tokens"] - 1)
        return {"prompt": len(ids) / result["prompt_s"],
                "answer": later / max(result["answer_s"], 1e-9), "tokens": result["tokens"],
                "load_s": self.load_s}


def row(name, ours, theirs):
    ratio = [a / b for a, b in zip(ours, theirs)]
    print(f"{name:8} locket {statistics.median(ours):10.1f} (best {max(ours):.1f})   "
          f"ftllm {statistics.median(theirs):10.1f} (best {max(theirs):.1f})   "
          f"ratio {statistics.median(ratio):.2f} ({min(ratio):.2f} to {max(ratio):.2f})")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="folder of a checkpoint")
    parser.add_argument("--words", type=int, default=400, help="of the prompt (400)")
    parser.add_argument("--tokens", type=int, default=32, help="of the answer, at most (32)")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    locket, fastllm = Locket(options), Fastllm(options)
    ours, theirs = [], []
    for turn in range(options.runs + 1):  # the first is not counted: caches are cold
        text = prompt_text(options.words, turn)
        ours.append(locket.run(text))
        theirs.append(fastllm.run(locket.ids(text)))
    ours, theirs = ours[1:], theirs[1:]
    print(f"{options.model}, {options.threads} threads, {options.runs} runs by turns, "
          f"{len(locket.ids(text))} prompt tokens; tokens a second")
    row("prompt", [r["prompt"] for r in ours], [r["prompt"] for r in theirs])
    if min(r["tokens"] for r in ours + theirs) > 1:
        row("answer", [r["answer"] for r in ours], [r["answer"] for r in theirs])
    print(f"answers: {[r['tokens'] for r in ours]} and {[r['tokens'] for r in theirs]} tokens; "
          f"loading {ours[-1]['load_s']:.2f} and {fastllm.load_s:.2f} s")


if __name__ == "__main__":
    main()
