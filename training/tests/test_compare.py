"""The comparison with the engine."""
import json
from pathlib import Path

import compare
from conftest import ROOM
from prompt import Message

MINI = Path(ROOM).parent / "models" / "mini"
ANSWER = {"content": None, "reasoning_content": "I look that up.", "tool_calls": [
    {"id": "x", "type": "function", "function": {"name": "recall", "arguments": '{"key": "cat name"}'}}]}


def test_an_answer_of_the_server_is_a_message():
    assert compare.message_of(ANSWER) == Message("assistant", "", "I look that up.", [("recall", {"key": "cat name"})])


def test_right_needs_the_content_and_the_calls():
    entry = {"expected": "", "expected_calls": [{"name": "recall", "arguments": {"key": "cat name"}}]}
    assert compare.is_right(entry, compare.message_of(ANSWER))
    assert not compare.is_right(entry, Message("assistant", ""))
    assert not compare.is_right({"expected": "Milo."}, compare.message_of(ANSWER))


def test_the_engine_is_asked_and_differences_are_counted(locket, tmp_path):
    entries = json.loads((MINI / "recall.json").read_text())["controls"][:2]
    with compare.Server(locket, str(MINI), tmp_path / "log") as server:
        equal, _ = compare.compare(server, entries, show=0)
        other = [{**entry, "bounded": entry["bounded"] + "!"} for entry in entries]
        assert (equal, compare.compare(server, other, show=0)[0]) == (2, 0)
