"""DeepSeek-V4.1's prompt format: messages to segments, and the text of a reply back to its parts.

A segment is control text, which becomes one token id, or plain text, which is encoded without the control vocabulary.
"""
import json
import re
from dataclasses import dataclass, field
from typing import NamedTuple, Optional

BOS, EOS, PAD = "<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜▁pad▁｜>"
USER, ASSISTANT, SYSTEM = "<｜User｜>", "<｜Assistant｜>", "<｜System｜>"
THINK, THINK_END, DSML = "<think>", "</think>", "｜DSML｜"

EFFORTS = {"low": 50, "high": 75, "max": 100}
EFFORT_LINE = "Reasoning Effort: {} (range 1-100, the higher the value, the more thorough the reasoning)\n\n"
TOOLS_TEXT = """## Tools

You have access to a set of tools to help answer the user's question. You can invoke tools by writing a \
"<{d} calls>" block like the following:

<{d} calls>
<{d} invoke name="$TOOL_NAME">
<{d} parameter name="$PARAMETER_NAME" string="true|false">$PARAMETER_VALUE</{d} parameter>
...
</{d} invoke>
<{d} invoke name="$TOOL_NAME2">
...
</{d} invoke>
</{d} calls>

String parameters should be specified as is and set `string="true"`. For all other types (numbers, booleans, arrays, \
objects), pass the value in JSON format and set `string="false"`.

If thinking_mode is enabled (triggered by {t}), you MUST output your complete reasoning inside {t}...{e} BEFORE any \
tool calls or final response.

Otherwise, output directly after {e} with tool calls or final response.

### Available Tool Schemas

{schemas}

You MUST strictly follow the above defined tool name and parameter schemas to invoke tool calls.
"""


@dataclass
class Message:
    role: str  # system, user, assistant, tool
    content: str
    reasoning: Optional[str] = None
    calls: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    # What the trainer is told about an assistant message.
    value: Optional[str] = None  # a value that is copied from earlier
    answers: bool = False  # whether it answers a question about a fact
    since: int = -1  # messages since the fact was stated; -1 if it never was


@dataclass
class Mode:
    thinking: bool = False
    effort: str = "high"
    tools: list[dict] = field(default_factory=list)
    keep_reasoning: bool = False  # of earlier turns; always kept where there are tools

    def keeps(self):
        return self.keep_reasoning or bool(self.tools)


class Segment(NamedTuple):
    control: bool
    text: str
    index: int  # of the message; -1 where the template speaks for none
    part: str  # context, tools, header, reasoning, content or call


def tools_text(tools):
    schemas = "\n".join(json.dumps({k: tool[k] for k in ("name", "description", "parameters")}, ensure_ascii=False)
                        for tool in tools)
    return TOOLS_TEXT.format(d=DSML, t=THINK, e=THINK_END, schemas=schemas)


def call_text(calls):
    blocks = []
    for name, arguments in calls:
        parameters = [f'<{DSML} parameter name="{key}" string="true">{value}</{DSML} parameter>'
                      for key, value in arguments.items()]
        blocks.append("\n".join([f'<{DSML} invoke name="{name}">', *(parameters or [""]), f"</{DSML} invoke>"]))
    return "\n\n<{0} calls>\n{1}\n</{0} calls>".format(DSML, "\n".join(blocks))


_CONTROL = re.compile(f"({re.escape(DSML)}|{re.escape(THINK)}|{re.escape(THINK_END)})")


def _template(text, index, part):
    """Text of the template itself: control strings in it are control tokens. Our values never spell them."""
    for piece in _CONTROL.split(text):
        if piece:
            yield Segment(bool(_CONTROL.fullmatch(piece)), piece, index, part)


def _start(messages, mode):
    yield Segment(True, BOS, -1, "context")
    system = messages[0].content if messages and messages[0].role == "system" else None
    if system is None and not mode.thinking and not mode.tools:
        return
    yield Segment(True, SYSTEM, 0, "context")
    text = (EFFORT_LINE.format(EFFORTS[mode.effort]) if mode.thinking else "") + (system or "")
    if mode.tools:
        yield from _template(f"{text}\n\n{tools_text(mode.tools)}", 0, "tools")
    elif text:
        yield Segment(False, text, 0, "context")


def reply(message, index, reasons):
    """What the model says: from behind the header to the end of the turn."""
    if reasons:
        if message.reasoning:
            yield Segment(False, message.reasoning, index, "reasoning")
        yield Segment(True, THINK_END, index, "reasoning")
    if message.content:
        yield Segment(False, message.content, index, "content")
    if message.calls:
        yield from _template(call_text(message.calls), index, "call")
    yield Segment(True, EOS, index, "content")


def render(messages, mode, last_as_generated=False):
    """Segments of a conversation, with the header of the next answer; or, with the last answer as it was generated."""
    yield from _start(messages, mode)
    in_user_turn = False
    for i, message in enumerate(messages):
        if message.role == "system":
            if i > 0:
                raise ValueError("a system message inside a conversation is not written here")
        elif message.role == "assistant":
            reasons = mode.thinking and (mode.keeps() or (last_as_generated and i + 1 == len(messages)))
            yield Segment(True, ASSISTANT, i, "header")
            yield Segment(True, THINK if reasons else THINK_END, i, "header")
            yield from reply(message, i, reasons)
            in_user_turn = False
        else:
            text = f"<tool_result>{message.content}</tool_result>" if message.role == "tool" else message.content
            if not in_user_turn:
                yield Segment(True, USER, i, "context")
            yield Segment(False, "\n\n" + text if in_user_turn else text, i, "context")
            in_user_turn = True
    if not last_as_generated:
        yield Segment(True, ASSISTANT, len(messages), "header")
        yield Segment(True, THINK if mode.thinking else THINK_END, len(messages), "header")


def runs(segments):
    """Neighbouring plain segments joined: each run is encoded as one text. Yields lists of segments."""
    run = []
    for segment in segments:
        if run and (segment.control or run[-1].control):
            yield run
            run = []
        run.append(segment)
    if run:
        yield run


def request(messages, mode):
    """The same as a request to a server of chat completions."""
    out = []
    for i, message in enumerate(messages):
        entry = {"role": message.role, "content": message.content}
        if message.reasoning is not None:
            entry["reasoning_content"] = message.reasoning
        if message.calls:
            entry["tool_calls"] = [{"id": f"call_{i}_{k}", "type": "function",
                                    "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}}
                                   for k, (name, arguments) in enumerate(message.calls)]
        if message.role == "tool":
            before = next(j for j in range(i - 1, -1, -1) if messages[j].role != "tool")
            entry["tool_call_id"] = f"call_{before}_{i - before - 1}"
        out.append(entry)
    body = {"messages": out, "thinking": {"type": "enabled" if mode.thinking else "disabled"}}
    if mode.thinking:
        body["reasoning_effort"] = mode.effort
        body["drop_thinking"] = not mode.keeps()
    if mode.tools:
        body["tools"] = [{"type": "function", "function": tool} for tool in mode.tools]
    return body


_CALLS = re.compile(rf"\n\n<{DSML} calls>\n(.*)\n</{DSML} calls>", re.S)
_INVOKE = re.compile(rf'<{DSML} invoke name="([^"]*)">\n(.*?)\n</{DSML} invoke>(?:\n|$)', re.S)
_PARAMETER = re.compile(rf'<{DSML} parameter name="([^"]*)" string="true">(.*?)</{DSML} parameter>(?:\n|$)', re.S)


def parse(text, thinking):
    """The message in a generated text, or None where it breaks the format."""
    reasoning = None
    if thinking:
        reasoning, end, text = text.partition(THINK_END)
        if not end:
            return None
    found = _CALLS.search(text)
    content, calls = text[:found.start()] if found else text, []
    if found:
        for name, body in _INVOKE.findall(found.group(1)):
            if _PARAMETER.sub("", body):
                return None
            calls.append((name, dict(_PARAMETER.findall(body))))
        if _INVOKE.sub("", found.group(1)) or not calls or text[found.end():]:
            return None
    if any(mark in part for part in (content, reasoning or "") for mark in (DSML, THINK, THINK_END)):
        return None
    return Message("assistant", content, reasoning, calls)
