"""The sets of conversations that a trained model is examined with. Seeds are fixed; training draws from others."""
import random
from dataclasses import dataclass

import facts
import prompt
import talk
from conversation import TOOLS, Conversation
from facts import UNKNOWN
from prompt import Message, Mode
from values import Pools

SEED = 5000
# Messages of a conversation up to the last question, at least and at most.
USUAL, LONG, SHORT = (101, 121), (299, 299), (31, 61)


@dataclass
class Case:
    messages: list[Message]  # up to the last message of the user or a tool
    mode: Mode
    expected: Message

    def is_right(self, reply):
        """Whether a reply says what it should; reasoning is free."""
        return reply is not None and (reply.content, reply.calls) == (self.expected.content, self.expected.calls)


class _Exam:
    """One conversation: a fact, other facts that are near to it or far from it, talk, and the question."""

    def __init__(self, name, number, held=False, kinds=None, mode=None, chatty=0.05):
        self.rng = random.Random(f"exam/{name}/{number}")
        self.pools = Pools(held, novelty=0.7)
        self.kinds = [kind for kind in facts.make_kinds(self.pools) if kinds is None or kinds(kind)]
        self.conv = Conversation(self.rng, self.pools, mode, near=0.1, chatty=chatty)
        self.target = self.rng.choice(self.kinds)
        near = [kind for kind in self.kinds if kind.is_neighbour(self.target)]
        rest = [kind for kind in self.kinds if kind not in near and kind is not self.target]
        self.others = self.rng.sample(near, min(4, len(near))) + self.rng.sample(rest, 5)

    def length(self, bounds):
        return self.rng.randrange(bounds[0], bounds[1] + 1, 2)

    def chat(self, until):
        """Talk that never touches the target, up to `until` messages."""
        conv, rng = self.conv, self.rng
        while len(conv.messages) < until:
            k = rng.random()
            known = [kind for kind in self.others if kind.key in conv.known]
            if k < 0.10:
                conv.state([rng.choice(self.others)], self.others)
            elif k < 0.18 and known:
                conv.ask(rng.choice(known))
            else:
                conv.filler()

    def finish(self):
        self.conv.ask(self.target, plain=True)
        return Case(self.conv.messages[:-1], self.conv.mode, self.conv.messages[-1])


def _recall(name, number, held=False, kinds=None, mode=None, bounds=USUAL):
    exam = _Exam(name, number, held, kinds, mode)
    length = exam.length(bounds)
    exam.conv.state([exam.target])
    exam.chat(length - 1)
    return exam.finish()


def _without_fact(case, number):
    """The same conversation, but small talk where the fact was."""
    said, reply = talk.filler(random.Random(f"exam/control/{number}"))
    return Case([Message("user", said), Message("assistant", reply), *case.messages[2:]], case.mode,
                Message("assistant", UNKNOWN))


def _long(number):
    exam = _Exam("long", number, chatty=0.46)
    length = exam.length(LONG)
    if number % 2:  # the fact anywhere, else in the first message
        exam.chat(2 * exam.rng.randrange(1, length // 2 - 1))
    exam.conv.state([exam.target])
    exam.chat(length - 1)
    return exam.finish()


def _changed(number):
    """Stated in the first message, changed once or twice; the last change lies anywhere before the question."""
    exam = _Exam("changed", number)
    length, rng = exam.length(USUAL), exam.rng
    exam.conv.state([exam.target])
    for at in sorted(rng.sample(range(2, length - 1, 2), rng.choice((1, 2)))):
        exam.chat(at)
        exam.conv.state([exam.target])
    exam.chat(length - 1)
    return exam.finish()


def _system(number):
    """Half ask for a fact that the system message states, half for the name that it gives to the assistant."""
    exam = _Exam("system", number, kinds=lambda kind: any(say.startswith("My ") for say in kind.says))
    length = exam.length(SHORT)
    exam.conv.system([exam.target], persona=number % 2, fact=1 - number % 2)
    exam.chat(length)
    if number % 2:
        exam.conv.ask_bot_name()
        return Case(exam.conv.messages[:-1], exam.conv.mode, exam.conv.messages[-1])
    return exam.finish()


def _thinking(number):
    mode = Mode(thinking=True, effort=tuple(prompt.EFFORTS)[number % 3], keep_reasoning=number % 2 == 1)
    return _recall("thinking", number, mode=mode, bounds=SHORT)


def _tools(number):
    """In turn: a fact that has to be kept, a question that needs a look-up, a result that has to be told."""
    exam = _Exam("tools", number, mode=Mode(thinking=number % 4 == 3, tools=TOOLS))
    exam.conv.state([exam.target])
    exam.chat(13)
    if number % 3:
        exam.conv.ask(exam.target, plain=True)
    else:
        exam.conv.state([exam.others[0]])
    messages = exam.conv.messages
    cut = -1 if number % 3 == 2 else -3
    return Case(messages[:cut], exam.conv.mode, messages[cut])


def _is_open(kind):
    return kind.open


SETS = {  # name: (how many, of a number the case)
    "recall": (50, lambda n: _recall("recall", n)),
    "controls": (20, lambda n: _without_fact(_recall("recall", n), n)),
    "unseen": (50, lambda n: _recall("unseen", n, held=True, kinds=_is_open)),
    "changed": (50, _changed),
    "long": (50, _long),
    "system": (20, _system),
    "thinking": (20, _thinking),
    "tools": (20, _tools),
}


def cases(name, count=None, seed=SEED):
    usual, make = SETS[name]
    return [make(seed + i) for i in range(count or usual)]
