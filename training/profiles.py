"""What training conversations are made of: one profile for each kind of data, and the sequences of a stage."""
import random
from dataclasses import dataclass

import facts
from conversation import TOOLS, Conversation
from prompt import EFFORTS, Mode
from values import Pools


@dataclass(frozen=True)
class Profile:
    """Shares are probabilities; those of fact and question are of a pair of messages, the rest is small talk."""
    fact: float
    ask: float
    unknown: float  # of the questions: those about facts that nobody stated
    oldest: float  # of the other questions: those about the fact that was stated first
    kinds: tuple[int, int]  # how many kinds of facts are in play
    multi: float  # of the facts: several in one message
    restate: float  # of the facts: those stated anew with another value
    gone: float = 0.0  # of the facts: those taken back
    near: float = 0.15  # of the values: near copies of one that was said
    neighbour: float = 0.6  # of the unknown facts: those close to a known one
    chatty: float = 0.0  # another sentence of small talk before
    system: float = 0.0
    persona: float = 0.3
    system_fact: float = 0.0
    recent: float = 0.0  # of the questions: those about the fact that was changed last
    talk: bool = True  # small talk at all
    thinking: float = 0.0
    tools: bool = False


PROFILES = {
    "drill": Profile(fact=0.35, ask=0.65, unknown=0.25, oldest=0.2, kinds=(4, 16), multi=0.4, restate=0.2, gone=0.02,
                     system=0.1, talk=False),
    "mixed": Profile(fact=0.2, ask=0.4, unknown=0.35, oldest=0.4, kinds=(6, 24), multi=0.25, restate=0.15, gone=0.03,
                     chatty=0.05, system=0.25, system_fact=0.1),
    "chat": Profile(fact=0.15, ask=0.25, unknown=0.35, oldest=0.5, kinds=(6, 24), multi=0.15, restate=0.1, gone=0.02,
                    chatty=0.1, system=0.3, system_fact=0.1),
    "changed": Profile(fact=0.35, ask=0.35, unknown=0.15, oldest=0.3, kinds=(4, 10), multi=0.15, restate=0.65,
                       gone=0.06, near=0.25, chatty=0.05, system=0.1, recent=0.3),
    "system": Profile(fact=0.15, ask=0.4, unknown=0.3, oldest=0.6, kinds=(4, 16), multi=0.15, restate=0.1, chatty=0.1,
                      system=1.0, persona=0.5, system_fact=0.6),
    "thinking": Profile(fact=0.25, ask=0.4, unknown=0.3, oldest=0.4, kinds=(4, 16), multi=0.15, restate=0.2,
                        gone=0.02, chatty=0.05, system=0.3, system_fact=0.3, thinking=1.0),
    "tools": Profile(fact=0.3, ask=0.4, unknown=0.4, oldest=0.3, kinds=(4, 16), multi=0.1, restate=0.2, chatty=0.05,
                     system=0.3, thinking=0.4, tools=True),
    "long": Profile(fact=0.08, ask=0.2, unknown=0.35, oldest=0.6, kinds=(10, 30), multi=0.15, restate=0.12, gone=0.02,
                    chatty=0.45, system=0.2, system_fact=0.1),
}
ROOM_FOR_ANSWER = 48  # tokens kept free for a last question and its reasoning


class Source:
    """Draws training sequences. All randomness comes from the generator of the call."""

    def __init__(self, encoder, novelty=0.7, easy=False, held=False):
        self.encoder, self.pools = encoder, Pools(held, novelty)
        self.kinds = facts.make_kinds(self.pools)
        if easy:
            self.kinds = facts.easy(self.kinds)
        self.neighbours = {kind.key: [other for other in self.kinds if kind.is_neighbour(other)] for kind in self.kinds}

    def sequence(self, rng, profile, length, weights):
        """ids and loss weights of `length` tokens; answers as (start, end, messages since or -1); starts of replies."""
        return self.encoder.sample(self.converse(rng, profile, tokens=length + 8), length, weights)

    def converse(self, rng, profile, messages=None, tokens=None):
        """One random conversation of about `messages` messages or, if these are given, `tokens` tokens."""
        return _Talk(self, rng, PROFILES[profile]).run(messages, tokens)


class _Talk:
    def __init__(self, source, rng, profile):
        self.source, self.rng, self.p = source, rng, profile
        thinking = rng.random() < profile.thinking
        mode = Mode(thinking, rng.choice(tuple(EFFORTS)), TOOLS if profile.tools else [],
                    keep_reasoning=thinking and rng.random() < 0.6)
        self.conv = Conversation(rng, source.pools, mode, near=profile.near, chatty=profile.chatty)
        self.mine = rng.sample(source.kinds, min(len(source.kinds), rng.randint(*profile.kinds)))
        if rng.random() < profile.system:
            self.conv.system(self.mine, profile.persona, profile.system_fact)
        self.fact, self.ask = profile.fact * rng.uniform(0.6, 1.4), profile.ask * rng.uniform(0.6, 1.4)

    def run(self, messages, tokens):
        conv, mode = self.conv, self.conv.mode
        # Where old reasoning is dropped only the last answer shows any: it has to fit.
        ends_with_answer = mode.thinking and not mode.keeps()
        limit = tokens and tokens - (ROOM_FOR_ANSWER if ends_with_answer else 0)
        size, done = len(self.source.encoder.prompt_ids([], mode)) if tokens else 0, 0
        while size < limit if tokens else len(conv.messages) < messages:
            self._pair()
            if tokens:
                size += sum(map(self._size, conv.messages[done:]))
                done = len(conv.messages)
        if ends_with_answer:
            self._question()
        return conv

    def _size(self, message):
        encoder = self.source.encoder
        shown = message.reasoning and self.conv.mode.keeps()
        return encoder.length(message) + (len(encoder.plain(message.reasoning)[0]) + 1 if shown else 0)

    def _pair(self):
        k = self.rng.random()
        if not self.conv.known or k < self.fact:
            self._fact()
        elif k < self.fact + self.ask or not self.p.talk:
            self._question()
        else:
            self.conv.filler()

    def _fact(self):
        rng, p, known = self.rng, self.p, self.conv.known
        if known and rng.random() < p.gone:
            here = [kind for kind in self.mine if kind.gone and kind.key in known and known[kind.key].value]
            if here:
                self.conv.take_back(rng.choice(here))
                return
        again = rng.random() < p.restate
        pool = [kind for kind in self.mine if (kind.key in known) == again] or self.mine
        count = rng.choice((2, 2, 3)) if rng.random() < p.multi else 1
        self.conv.state(rng.sample(pool, min(count, len(pool))), self.mine, echo=not p.talk and rng.random() < 0.7)

    def _question(self):
        rng, p, known = self.rng, self.p, self.conv.known
        if not known or rng.random() < p.unknown:
            if rng.random() < 0.12:
                self.conv.ask_bot_name()
            else:
                self.conv.ask(self._unknown())
            return
        told = [kind for kind in self.mine if kind.key in known]
        k = rng.random()
        if k < p.oldest:
            self.conv.ask(min(told, key=lambda kind: known[kind.key].index))
        elif k < p.oldest + p.recent:
            self.conv.ask(max(told, key=lambda kind: (known[kind.key].changed, known[kind.key].index)))
        else:
            self.conv.ask(rng.choice(told))

    def _unknown(self):
        rng, known = self.rng, self.conv.known
        if known and rng.random() < self.p.neighbour:
            near = [kind for kind in self.source.neighbours[rng.choice(list(known))] if kind.key not in known]
            if near:
                return rng.choice(near)
        return rng.choice([kind for kind in self.source.kinds if kind.key not in known] or self.source.kinds)


if __name__ == "__main__":
    import sys

    from tokenizers import Tokenizer

    from encoder import Encoder

    source = Source(Encoder(Tokenizer.from_file(sys.argv[1])))
    print(len(source.kinds), "kinds of facts")
    for name in PROFILES:
        for message in source.converse(random.Random(0), name, messages=14).messages:
            calls = " ".join(f"{tool}({', '.join(arguments.values())})" for tool, arguments in message.calls)
            print(f"{name:8} {message.role:9} {message.reasoning or ''} | {message.content}{calls}")
