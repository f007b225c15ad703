"""The same GGUF file in Locket and in llama.cpp (llama-cpp-python): greedy tokens, perplexity, speed."""

import argparse
import ctypes
import json
import math
import os
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import llama_cpp
import numpy as np

ROOT = Path(__file__).resolve().parent.parent.parent
SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
QUESTIONS = [
    "What is the capital of France?", "Name three primary colors.", "Why is the sky blue?",
    "Write a short poem about the sea.", "How many legs does a spider have?", "What is 12 + 30?",
    "Explain photosynthesis to a child.", "Who wrote Romeo and Juliet?",
    "List four animals that live in the forest.", "Translate 'good morning' into Spanish.",
    "What does a compiler do?", "Give me a recipe for pancakes.", "What is the boiling point of water?",
    "Tell me a fact about the moon.", "How do I tie a tie?", "What is gravity?",
    "Write one sentence about autumn.", "Which planet is the largest?",
    "Suggest a name for a black cat.", "What is the opposite of cold?"]
# Abraham Lincoln, 1863, and the Declaration of Independence, 1776: public domain.
TEXT = """Four score and seven years ago our fathers brought forth on this continent, a new nation, \
conceived in Liberty, and dedicated to the proposition that all men are created equal.

Now we are engaged in a great civil war, testing whether that nation, or any nation so conceived and so \
dedicated, can long endure. We are met on a great battle-field of that war. We have come to dedicate a \
portion of that field, as a final resting place for those who here gave their lives that that nation might \
live. It is altogether fitting and proper that we should do this.

But, in a larger sense, we can not dedicate -- we can not consecrate -- we can not hallow -- this ground. \
The brave men, living and dead, who struggled here, have consecrated it, far above our poor power to add or \
detract. The world will little note, nor long remember what we say here, but it can never forget what they \
did here. It is for us the living, rather, to be dedicated here to the unfinished work which they who fought \
here have thus far so nobly advanced.

When in the Course of human events, it becomes necessary for one people to dissolve the political bands which \
have connected them with another, and to assume among the powers of the earth, the separate and equal station \
to which the Laws of Nature and of Nature's God entitle them, a decent respect to the opinions of mankind \
requires that they should declare the causes which impel them to the separation.

We hold these truths to be self-evident, that all men are created equal, that they are endowed by their \
Creator with certain unalienable Rights, that among these are Life, Liberty and the pursuit of Happiness.
"""


class Locket:
    def __init__(self, options):
        self.options = options
        self.threads = ["--threads", str(options.threads), "--mode", "plain" if options.float32 else "wide"]

    def call(self, *arguments, text=None):
        command = [str(self.options.program), *arguments]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command[:2])} failed with {done.returncode}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def ids(self, text):
        line = json.dumps({"text": text}) + "\n"
        return json.loads(self.call("tokens", self.options.model, "--json", text=line))["ids"]

    def logits(self, ids):
        """[positions, vocabulary] of all positions: the same bits as one token after the other."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "ids.json").write_text(json.dumps(ids))
            output = Path(folder) / "trace.safetensors"
            self.call("trace", self.options.model, "--ids", f"{folder}/ids.json", "-o", str(output),
                      "--replay", "full", *self.threads)
            data = output.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        entry = header["logits"]
        begin, end = (8 + length + at for at in entry["data_offsets"])
        values = np.frombuffer(data[begin:end], np.float32)
        return values.reshape(len(ids), -1)

    def run(self, text):
        result = json.loads(self.call("run", self.options.model, "-p", text, "--json", "--memory", "off",
                                      "--max-tokens", str(self.options.tokens), *self.threads))
        return result


def keep_weights_as_they_are():
    """llama.cpp rearranges weights for AMX where the processor has it; on some virtual machines its tile
    configuration faults. The Python package has no option for it."""
    defaults = llama_cpp.llama_cpp.llama_model_default_params

    def changed():
        params = defaults()
        params.use_extra_bufts = False
        return params
    llama_cpp.llama_cpp.llama_model_default_params = changed


@llama_cpp.llama_log_callback
def say_nothing(_level, _text, _data):
    pass


def float_copy(model, folder):
    """The file with the same weights in float32, made by llama.cpp."""
    llama_cpp.llama_log_set(say_nothing, ctypes.c_void_p())
    target = str(Path(folder) / "float32.gguf")
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = llama_cpp.LLAMA_FTYPE_ALL_F32
    params.allow_requantize = True
    if llama_cpp.llama_model_quantize(model.encode(), target.encode(), params) != 0:
        sys.exit(f"{model} cannot be converted to float32")
    return target


class Llama:
    def __init__(self, options):
        self.options = options
        exact = {"type_k": llama_cpp.GGML_TYPE_F32, "type_v": llama_cpp.GGML_TYPE_F32} if options.float32 else {}
        if options.no_repack:
            keep_weights_as_they_are()
        self.model = llama_cpp.Llama(options.model, n_ctx=2048, n_batch=512, n_threads=options.threads,
                                     n_threads_batch=options.threads, logits_all=True, verbose=False, **exact)

    def ids(self, text, special=False):
        return self.model.tokenize(text.encode(), add_bos=False, special=special)

    def logits(self, ids):
        self.model.reset()
        self.model.eval(ids)
        return np.array(self.model.scores[:len(ids)])

    def greedy(self, ids, count):
        """Ids of the answer with the gap to the second best, and the times of prompt and answer."""
        self.model.reset()
        start = time.monotonic()
        self.model.eval(ids)
        first = time.monotonic()
        answer, gaps = [], []
        for step in range(count):
            row = self.model.scores[len(ids) + step - 1]
            best = int(np.argmax(row))
            answer.append(best)
            gaps.append(float(row[best] - np.partition(row, -2)[-2]))
            if best == self.model.token_eos():
                break
            self.model.eval([best])
        return answer, gaps, first - start, time.monotonic() - first


def chat_text(question):
    return (f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n"
            "<|im_start|>assistant\n")


def perplexity(logits, ids):
    rows = logits[:-1].astype(np.float64)
    peak = rows.max(axis=1, keepdims=True)
    total = np.log(np.exp(rows - peak).sum(axis=1)) + peak[:, 0]
    return math.exp(float(np.mean(total - rows[np.arange(len(ids) - 1), ids[1:]])))


def compare_answers(locket, llama, options):
    equal, worst = 0, 0.0
    for question in QUESTIONS[:options.questions]:
        prompt = llama.ids(chat_text(question), special=True)
        answer, gaps, _, _ = llama.greedy(prompt, options.tokens)
        rows = locket.logits(prompt + answer)[len(prompt) - 1:-1]
        ours = rows.argmax(axis=1)
        different = np.flatnonzero(ours != np.array(answer))
        if len(different) == 0:
            equal += 1
            continue
        at = int(different[0])
        gap = float(rows[at, ours[at]] - rows[at, answer[at]])
        worst = max(worst, gap)
        print(f"  differs at token {at}: logit gap {gap:.4f} in Locket, {gaps[at]:.4f} in llama.cpp: {question}")
    print(f"greedy answers: {equal} of {options.questions} equal for {options.tokens} tokens; largest logit gap "
          f"at a first difference {worst:.4f}")


def compare_perplexity(locket, llama):
    ids = llama.ids(TEXT)
    print(f"token ids of the text equal: {ids == locket.ids(TEXT)} ({len(ids)} tokens)")
    ours, theirs = perplexity(locket.logits(ids), ids), perplexity(llama.logits(ids), ids)
    print(f"perplexity: locket {ours:.4f}, llama.cpp {theirs:.4f}, difference {100 * (ours / theirs - 1):+.3f} %")


def row(name, ours, theirs):
    ratio = [a / b for a, b in zip(ours, theirs)]
    print(f"{name:8} locket {statistics.median(ours):8.1f} (best {max(ours):.1f})   "
          f"llama.cpp {statistics.median(theirs):8.1f} (best {max(theirs):.1f})   "
          f"ratio {statistics.median(ratio):.2f} ({min(ratio):.2f} to {max(ratio):.2f})")


def compare_speed(locket, llama, options):
    prompt, answer = [], []
    for turn in range(options.runs):
        text = f"Turn {turn}. " + TEXT[:1800]
        ours = locket.run(text)
        ids = llama.ids(chat_text(text), special=True)
        theirs, _, prompt_s, answer_s = llama.greedy(ids, options.tokens)
        timings = ours["timings"]
        prompt.append((ours["prompt_tokens"] / timings["prompt_seconds"], len(ids) / prompt_s))
        answer.append((timings["tokens_per_second"], len(theirs) / max(answer_s, 1e-9)))
    print(f"tokens a second, {options.threads} threads, {options.runs} runs by turns, {len(ids)} prompt tokens "
          f"(Locket counts {ours['prompt_tokens']})")
    row("prompt", *zip(*prompt))
    row("answer", *zip(*answer))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a GGUF file with ChatML tokens")
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/locket")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--tokens", type=int, default=64, help="of an answer (64)")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--no-repack", action="store_true", help="llama.cpp: no rearranged weights, no AMX")
    parser.add_argument("--float32", action="store_true",
                        help="both compute in float32: weights, activations and memory (the package rounds "
                             "activations to 8 bits for quantized weights)")
    options = parser.parse_args()
    print(f"{Path(options.model).name}, llama-cpp-python {llama_cpp.__version__}"
          + (", all in float32" if options.float32 else ""))
    with tempfile.TemporaryDirectory() as folder:
        if options.float32:
            options.model = float_copy(options.model, folder)
        locket, llama = Locket(options), Llama(options)
        compare_perplexity(locket, llama)
        compare_answers(locket, llama, options)
        compare_speed(locket, llama, options)


if __name__ == "__main__":
    main()
