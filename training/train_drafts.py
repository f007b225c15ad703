"""Trains the draft layer on the frozen backbone, and measures how many of its guesses are accepted."""

import random
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

import config
import drafts
import initial
import model
import state
from encoder import Encoder
from native import call
from network import Network
from profiles import Source
from rotary import rope_tables
from stages import SEGMENT, WINDOW
from weights import Layout, Weights

LENGTH, BATCH, SEGMENTS, ANCHORS = 384, 6, 3, 6
MIX = {"mixed": 0.4, "chat": 0.3, "changed": 0.1, "thinking": 0.1, "system": 0.1}
WEIGHTS = dict(control=0.0, user=0.0, reply=1.0, answer=1.0, first=1.0, value=1.0)
RATE, STEPS = 2e-3, 500


class Backbone:
    """The trained model for states, and its plain twin for the draft's own arithmetic."""

    def __init__(self, source: Path, tokenizer):
        text, hashes = state.describe(tokenizer)
        kept, layout = state.read(source), state.layout_of(text, hashes)
        self.text, self.weights = text, Weights(layout, kept["weights"].copy(), np.zeros(layout.size, np.float32))
        bias = dict(zip(config.bias_names(text), kept["bias"]))
        self.net = Network(text, hashes, self.weights, bias, rope_tables(text, 4096))
        self.net.quantize = self.net.sparse = True
        self.weights.refresh(True)
        self.plain = model.Mini(text, hashes).load(layout.views(kept["weights"]), bias)
        self.plain.quant = {"weights", "acts", "cache"}

    def states(self, ids, starts):
        """Of decoder segments: taps [B x S, 64, 3 x 128] and the likeliest next tokens [B x S, 64]."""
        layers = self.text["dspark_target_layer_ids"]
        s = self.net.forward(ids, starts, SEGMENT, taps=layers)
        best = (s.h @ self.weights.value["head.weight"].T).argmax(1)
        return np.concatenate([s.taps[i] for i in layers], 1).reshape(-1, SEGMENT, len(layers) * 128), best.reshape(
            -1, SEGMENT
        )


class Drafter:
    def __init__(self, backbone: Backbone, seed: int):
        self.backbone, self.net = backbone, backbone.plain
        self.layout = Layout(config.draft_shapes(backbone.text))
        self.flat, self.first, self.second = (np.zeros(self.layout.size, np.float32) for _ in range(3))
        initial.initialise(self.layout.views(self.flat), seed + 99)
        self.params = {k: torch.from_numpy(v).requires_grad_(True) for k, v in self.layout.views(self.flat).items()}
        self.net.w |= self.params
        self.net.bias[drafts.BIAS] = torch.zeros(backbone.text["dspark_n_routed_experts"])

    def keep(self) -> dict:
        return {"flat": self.flat, "first": self.first, "second": self.second, "bias": self.net.bias[drafts.BIAS].numpy()}

    def restore(self, kept: dict):
        for name, array in self.keep().items():
            array[...] = kept[name]

    def update(self, step: int, steps: int):
        gradient = np.zeros_like(self.flat)
        for name, view in self.layout.views(gradient).items():
            if self.params[name].grad is not None:
                view[...] = self.params[name].grad.numpy()
                self.params[name].grad = None
        norm = float(np.sqrt((gradient.astype(np.float64) ** 2).sum()))
        rate = RATE * min(1.0, (step + 1) / 20) * (1 - 0.95 * step / steps)
        call(
            "adamw",
            len(self.flat),
            gradient,
            np.zeros_like(gradient),
            min(1.0, 1.0 / (norm + 1e-6)),
            rate,
            0.01,
            0.9,
            0.95,
            1 - 0.9 ** (step + 1),
            1 - 0.95 ** (step + 1),
            self.flat,
            self.first,
            self.second,
        )

    def loss(self, ids, weights, starts, rng):
        """Cross entropy of the guesses and of the confidence, at random places of the replies."""
        N = self.backbone.text["dspark_block_size"]
        taps, _ = self.backbone.states(ids, starts)
        rows = np.repeat(np.arange(len(ids)), starts.shape[1])
        flat = starts.reshape(-1)
        anchors = [
            (s, j)
            for s in range(len(flat))
            for j in range(WINDOW - 1, SEGMENT - 1)
            if flat[s] + j + N + 1 < ids.shape[1] and weights[rows[s], flat[s] + j + 1 : flat[s] + j + 3].all()
        ]
        anchors = rng.sample(anchors, min(len(anchors), ANCHORS * len(flat)))
        segment, place = (np.array(x) for x in zip(*anchors))
        at = flat[segment] + place
        text = torch.from_numpy(np.stack([ids[rows[s], p + 1 : p + 2 + N] for s, p in zip(segment, at)]))
        counted = torch.from_numpy(
            np.stack([np.cumprod(weights[rows[s], p + 2 : p + 2 + N] > 0) for s, p in zip(segment, at)])
        ).float()
        position = torch.from_numpy(flat[:, None] + np.arange(SEGMENT))
        ring = drafts.main_rows(self.net, torch.from_numpy(taps), position)
        ring = torch.stack([ring[s, j - WINDOW + 1 : j + 1] for s, j in zip(segment, place)])
        return self._compare(text, counted, torch.from_numpy(at) + 1, ring, N)

    def _compare(self, text, counted, position, ring, N):
        net = self.net
        inputs = torch.full((len(text), N), net.c["dspark_noise_token_id"])
        inputs[:, 0] = text[:, 0]
        where = position[:, None] + torch.arange(N)
        h = drafts.hidden(net, inputs, where, ring, torch.ones(len(text), WINDOW, dtype=torch.bool))
        change, embedded = drafts.markov(net, text[:, :N].reshape(-1))
        out = drafts.logits(net, h) + change
        each = F.cross_entropy(out, text[:, 1:].reshape(-1), reduction="none").view(-1, N)
        right = (out.argmax(-1).view(-1, N) == text[:, 1:]).float()
        reached = counted * torch.cat((torch.ones(len(text), 1), right.cumprod(1)[:, :-1]), 1)
        sure = F.binary_cross_entropy_with_logits(
            drafts.confidence(net, h.detach(), embedded.detach()).view(-1, N), right, reduction="none"
        )
        self.accepted = float((right.cumprod(1) * counted).sum(1).mean())
        return (each * counted).sum() / counted.sum() + 0.1 * (sure * reached).sum() / reached.sum()


def draw(source, seed: int, name: str, step: int, batch: int):
    """Sequences and decoder segments that begin one window before a reply."""
    rng = random.Random(f"{seed}/{name}/{step}")
    ids, weights, starts = [], [], []
    for _ in range(batch):
        i, w, _, replies = source.sequence(rng, rng.choices(list(MIX), list(MIX.values()))[0], LENGTH, WEIGHTS)
        room = [r - WINDOW for r in replies if WINDOW <= r <= LENGTH - WINDOW] or [0]
        ids.append(i)
        weights.append(w)
        starts.append(sorted(rng.choices(room, k=SEGMENTS)))
    return np.array(ids, np.int64), np.array(weights, np.float32), np.array(starts), rng


def train(tokenizer, source: Path, folder: Path, seed: int, steps: int = STEPS, every: int = 25):
    torch.set_num_threads(1)
    drafter, talk = Drafter(Backbone(source, tokenizer), seed), Source(Encoder(tokenizer), 0.7)
    first, running = 0, folder / "running-drafts.npz"
    if running.exists():
        kept = state.read(running)
        drafter.restore(kept)
        first = int(kept["step"])
    began, accepted = time.time(), []
    for step in range(first, steps):
        loss = drafter.loss(*draw(talk, seed, "drafts", step, BATCH))
        loss.backward()
        drafter.update(step, steps)
        accepted.append(drafter.accepted)
        if (step + 1) % every == 0 or step + 1 == steps:
            left = (time.time() - began) / (step + 1 - first) * (steps - step - 1) / 60
            print(
                f"{'drafts':12} {step + 1:5}/{steps:<5} loss {loss.item():.4f}  accepted {np.mean(accepted):.2f}  "
                f"{left:.1f} min left",
                flush=True,
            )
            accepted = []
            state.write(running, **drafter.keep(), step=np.array(step + 1))
    state.write(folder / "drafts.npz", **drafter.layout.views(drafter.flat), **{drafts.BIAS: drafter.net.bias[drafts.BIAS].numpy()})
    running.unlink(missing_ok=True)
    return drafter


@torch.no_grad()
def acceptance(drafter: Drafter, tokenizer, seed: int = 1, batches: int = 10) -> dict:
    """Greedy verification on new conversations with values that training never saw: replies that the backbone itself
    would write.
    """
    talk, net = Source(Encoder(tokenizer), 0.7, held=True), drafter.net
    N, passes, taken, replies = net.c["dspark_block_size"], 0, 0, 0
    for step in range(batches):
        ids, _, starts, _ = draw(talk, seed, "acceptance", step, BATCH)
        taps, best = drafter.backbone.states(ids, starts)
        flat = starts.reshape(-1)
        ring = drafts.main_rows(net, torch.from_numpy(taps), torch.from_numpy(flat[:, None] + np.arange(SEGMENT)))
        for s, start in enumerate(flat):
            text = ids[s // SEGMENTS, start : start + SEGMENT + 1]
            ends = np.flatnonzero(text[WINDOW:] == net.c["eos_token_id"])
            if not len(ends) or (best[s, WINDOW - 1 : WINDOW + ends[0]] != text[WINDOW : WINDOW + ends[0] + 1]).any():
                continue
            replies += 1
            reply, at = text[WINDOW : WINDOW + ends[0] + 1], 0
            while at < len(reply) - 1:
                token, j = torch.tensor([int(reply[at])]), WINDOW - 1 + at
                d = drafts.guess(
                    net,
                    token,
                    torch.tensor([int(start) + j + 1]),
                    ring[s : s + 1, j - WINDOW + 1 : j + 1],
                    torch.ones(1, WINDOW, dtype=torch.bool),
                )[0].numpy()
                rest = reply[at + 1 : at + 1 + N]
                good = int(np.cumprod(d[: len(rest)] == rest).sum())
                passes, taken, at = passes + 1, taken + good, at + good + 1
    return {"replies": replies, "passes": passes, "accepted_per_pass": round(taken / max(passes, 1), 3), "block": N}
