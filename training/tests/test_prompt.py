"""The prompt format: rendered as the engine renders it, byte for byte and id for id; replies parsed back."""
import json
import random
import subprocess

import pytest

import profiles
import prompt
from conversation import TOOLS
from prompt import Message, Mode

KINDS = ["chat", "changed", "system", "thinking", "tools"]


def conversations(encoder, profile, count):
    """Conversations cut behind a message of the user or a tool."""
    rng, source = random.Random(f"render/{profile}"), profiles.Source(encoder)
    for _ in range(count):
        conv = source.converse(rng, profile, messages=rng.randint(4, 40))
        ends = [i for i, message in enumerate(conv.messages) if message.role in ("user", "tool")]
        yield conv.messages[:rng.choice(ends) + 1], conv.mode


@pytest.mark.parametrize("profile", KINDS)
def test_renders_as_the_engine_does(profile, encoder, vocabulary_folder, locket):
    cases = list(conversations(encoder, profile, 50))
    lines = "\n".join(json.dumps(prompt.request(*case), ensure_ascii=False) for case in cases)
    command = [locket, "render", "--tokenizer", str(vocabulary_folder / "tokenizer.json")]
    done = subprocess.run(command, input=lines, text=True, capture_output=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases)
    for (messages, mode), answer in zip(cases, answers):
        segments = list(prompt.render(messages, mode))
        assert "".join(segment.text for segment in segments) == answer["text"]
        assert encoder.prompt_ids(messages, mode) == answer["ids"]


def text_of(segments):
    return "".join(segment.text for segment in segments)


def test_the_worked_examples_of_the_format():
    assert text_of(prompt.render([Message("system", "S"), Message("user", "U")], Mode())) == (
        "<｜begin▁of▁sentence｜><｜System｜>S<｜User｜>U<｜Assistant｜></think>")
    turns = [Message("user", "q1"), Message("assistant", "a1", "r1"), Message("user", "q2")]
    head = ("<｜begin▁of▁sentence｜><｜System｜>Reasoning Effort: 75 (range 1-100, the higher the value, the more "
            "thorough the reasoning)\n\n<｜User｜>q1<｜Assistant｜>")
    assert text_of(prompt.render(turns, Mode(thinking=True))) == (
        head + "</think>a1<｜end▁of▁sentence｜><｜User｜>q2<｜Assistant｜><think>")
    assert text_of(prompt.render(turns, Mode(thinking=True, keep_reasoning=True))) == (
        head + "<think>r1</think>a1<｜end▁of▁sentence｜><｜User｜>q2<｜Assistant｜><think>")


@pytest.mark.parametrize("thinking", [False, True])
def test_a_reply_is_parsed_back(thinking):
    reply = Message("assistant", "", "I look that up." if thinking else None,
                    [("remember", {"key": "cat name", "value": "Milo"}), ("recall", {"key": "cat name"})])
    text = text_of(prompt.reply(reply, 0, thinking)).removesuffix(prompt.EOS)
    assert prompt.parse(text, thinking) == reply
    assert prompt.parse(text.replace('" string', '"string'), thinking) is None
    assert prompt.parse(text.replace(" calls>", " call>"), thinking) is None
    assert prompt.parse(text + "!", thinking) is None


def test_missing_think_end_breaks_the_format():
    assert prompt.parse("The user said: my cat is called Milo.", True) is None
    assert prompt.parse("x</think>y", True) == Message("assistant", "y", "x")


def test_control_strings_in_the_tools_text_are_control_tokens():
    segments = list(prompt.render([Message("user", "U")], Mode(tools=TOOLS)))
    assert sum(segment.control and segment.text == prompt.DSML for segment in segments) == 9
    assert not any(prompt.DSML in segment.text for segment in segments if not segment.control)
