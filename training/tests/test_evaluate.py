"""The examination: its conversations are what they claim, replies greedy ones, recall.json what readers expect."""
import json
import random

import pytest
import torch

import evaluate
import exam
import values
from facts import UNKNOWN
from prompt import Message
from values import is_held, pieces

SIZE = 64


class Rule:
    """Stands for a network: the next token follows from the last three, and from the first one of all."""

    def __init__(self, favours=()):
        self.passes, self.favours = 0, list(favours)

    def next(self, tokens):
        if self.favours and 0 <= len(tokens) - self.favours[0] < len(self.favours[1]):
            return self.favours[1][len(tokens) - self.favours[0]]
        return random.Random(str((tokens[0], tokens[-3:]))).randrange(1, SIZE)

    def forward(self, ids, starts=None, length=None, take=None):
        self.passes += 1
        batch, count = ids.shape
        where = [(b, t) for b in range(batch) for t in range(count)]
        if starts is not None:
            where = [(b, int(start) + t) for b in range(batch) for start in starts[b] for t in range(length)]
        elif take is not None:
            where = [where[i] for i in take.tolist()]
        logits = torch.zeros(len(where), SIZE)
        for row, (b, t) in enumerate(where):
            logits[row, self.next(ids[b, :t + 1].tolist())] = 1
        return logits


def greedy(rule, prompt_ids, eos, room):
    out = []
    while len(out) < room:
        token = rule.next(prompt_ids + out)
        if token == eos:
            break
        out.append(token)
    return out


@pytest.mark.parametrize("bounded", [True, False])
def test_replies_are_those_of_greedy_decoding(bounded):
    rng, rule = random.Random(1), Rule()
    prompts = [[rng.randrange(3, SIZE) for _ in range(rng.randrange(33, 90))] for _ in range(12)]
    guesses = [[rng.randrange(3, SIZE) for _ in range(10)] for _ in prompts]
    got = evaluate.generate(rule, prompts, guesses, 1, 20, bounded)
    assert got == [greedy(rule, ids, 1, 20) for ids in prompts]
    assert len({len(reply) for reply in got}) > 2


def test_a_right_guess_takes_one_pass():
    reply = [5, 9, 5, 1]
    rule = Rule((40, reply))
    assert evaluate.generate(rule, [list(range(3, 43))], [reply], 1, 20) == [[5, 9, 5]]
    assert rule.passes == 1


def test_a_limit_of_passes_ends_replies():
    rule = Rule()
    prompts = [[random.Random(i).randrange(3, SIZE) for _ in range(40)] for i in range(4)]
    got = evaluate.generate(rule, prompts, [[2] * 9] * 4, 1, 30, passes=2)
    assert rule.passes == 2
    assert all(reply == greedy(rule, ids, 1, 30)[:len(reply)] for ids, reply in zip(prompts, got))


def test_batches_keep_the_order(encoder):
    cases = exam.cases("system", 7) + exam.cases("recall", 5)
    asked = []

    def ask(name, cases, bounded):
        asked.append(len(cases))
        return [case.messages[-1].content for case in cases]
    got = evaluate.in_batches(ask, encoder, "recall", cases)
    assert got == [case.messages[-1].content for case in cases] and sum(asked) == 12 and len(asked) > 1


def test_the_sets_are_what_they_are_called():
    for name, (count, _) in exam.SETS.items():
        cases = exam.cases(name)
        assert len(cases) == count
        assert cases == exam.cases(name)
        assert len({case.messages[0].content + case.messages[-1].content for case in cases}) > 0.8 * count
    assert all(101 <= len(case.messages) <= 121 for case in exam.cases("recall") + exam.cases("unseen"))
    assert all(len(case.messages) == 299 for case in exam.cases("long"))
    assert all(case.expected.content == UNKNOWN for case in exam.cases("controls"))
    assert all(case.expected.value in case.messages[0].content for case in exam.cases("recall"))


def test_controls_are_the_same_conversations_without_the_fact():
    for with_fact, without in zip(exam.cases("recall", 20), exam.cases("controls")):
        assert with_fact.messages[2:] == without.messages[2:]
        assert with_fact.expected.value not in without.messages[0].content


def test_values_of_unseen_are_held_out():
    for case in exam.cases("unseen"):
        parts = [piece for piece in pieces(case.expected.value) if piece not in ("New", "Port", "Saint", "Upper")]
        assert all(is_held(part) for part in parts)
    drawn = [case.expected.value.split()[0] for case in exam.cases("unseen")]
    assert not set(drawn) & set(values.NAMES + values.PLACES)


def test_the_latest_value_is_the_right_one():
    distances = []
    for case in exam.cases("changed"):
        stated = case.messages[len(case.messages) - 1 - case.expected.since]
        assert case.expected.value in stated.content and case.expected.value not in case.messages[0].content
        distances.append(case.expected.since)
    assert min(distances) < 10 and max(distances) > 80


@pytest.mark.parametrize("name", list(exam.SETS))
def test_the_right_reply_is_judged_right_after_its_way_through_the_tokens(name, encoder):
    cases = exam.cases(name, 6)
    replies = [encoder.reply_ids(case.expected, case.mode)[:-1] for case in cases]
    texts = [encoder.tokenizer.decode(reply, skip_special_tokens=False) for reply in replies]
    assert evaluate.judge(cases, texts) == {"right": 6, "format": 6, "of": 6}
    assert max(map(len, replies)) < evaluate.ROOM.get(name, 32) - 1


def test_right_is_the_whole_answer_and_the_calls():
    case = exam.cases("tools", 2)[1]
    assert case.is_right(Message("assistant", case.expected.content, "whatever", case.expected.calls))
    assert not case.is_right(Message("assistant", case.expected.content + "!", None, case.expected.calls))
    assert not case.is_right(Message("assistant", case.expected.content, None, [("recall", {"key": "no such key"})]))
    assert not case.is_right(None)


def test_recall_json_holds_requests_and_answers(tmp_path):
    def ask(name, cases, bounded=True):
        return [case.expected.content + ("" if bounded else " (full)") for case in cases]
    results = evaluate.examine(ask, ("recall", "controls", "thinking", "tools"), count=4)
    evaluate.write(tmp_path / "recall.json", results, ask)
    text = (tmp_path / "recall.json").read_text()
    stored = json.loads(text)
    assert stored["recall_exact"] == {"bounded": 4, "full": 0, "of": 4}
    assert [len(stored[name]) for name in ("recall", "controls", "thinking", "tools")] == [4] * 4
    for entry in stored["recall"] + stored["controls"]:
        assert set(entry) == {"messages", "expected", "bounded", "full"}
        assert {message["role"] for message in entry["messages"]} == {"user", "assistant"}
        assert all(set(message) == {"role", "content"} for message in entry["messages"])
    assert stored["thinking"][0]["thinking"] == {"type": "enabled"}
    assert [tool["function"]["name"] for tool in stored["tools"][0]["tools"]] == ["remember", "recall"]
    assert max(map(len, text.splitlines())) < 1200
