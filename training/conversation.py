"""Builds a conversation: facts are stated, changed and taken back, questions ask for them, talk lies between."""
from dataclasses import dataclass

import facts
import talk
from facts import UNKNOWN
from prompt import Message, Mode
from talk import capital

SYSTEMS = ["You are a helpful assistant.", "You are a friendly assistant. Keep your answers short.",
           "Answer in one sentence.", "Be kind and brief.", "You talk with a friend. Remember what they tell you.",
           "You are a careful listener. Answer only what you know.", "Antworte kurz und freundlich auf Englisch.",
           "Réponds en anglais, en une phrase.", "Responde en inglés con frases cortas.",
           "Rispondi in inglese, con gentilezza."]
PERSONAS = ["Your name is {v}.", "You are called {v}.", "Du heißt {v}.", "Tu t'appelles {v}.", "Te llamas {v}."]
BOT_NAME = "Locket"
ECHO = "{v}, I will remember that."

TOOLS = [{"name": "remember", "description": "Keep a value for later.",
          "parameters": {"type": "object", "properties": {"key": {"type": "string"}, "value": {"type": "string"}},
                         "required": ["key", "value"]}},
         {"name": "recall", "description": "Look up a value that was kept.",
          "parameters": {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}}]
STORED, MISSING = "ok", "not found"


@dataclass
class Known:
    value: str | None  # None: taken back
    index: int  # of the message that says it
    sentence: str
    changed: bool = False


def low(text):
    return text if text.startswith("I ") else text[0].lower() + text[1:]


class Conversation:
    """`messages` with marks for the trainer; `known` is what a perfect listener knows."""

    def __init__(self, rng, pools, mode=None, near=0.0, chatty=0.0):
        self.rng, self.pools, self.mode = rng, pools, mode or Mode()
        self.near, self.chatty = near, chatty
        self.messages, self.known = [], {}
        self.bot_name, self.bot_index = BOT_NAME, -1
        self.stored = {}  # what the tools keep; more than was said if an earlier session kept it

    # ---- messages ----

    def _user(self, text):
        self.messages.append(Message("user", text))

    def _assistant(self, text, reasoning, **marks):
        self.messages.append(Message("assistant", text, reasoning if self.mode.thinking else None, **marks))

    def _call(self, calls, reasoning):
        """An assistant message with calls, and the results of the tools."""
        self._assistant("", reasoning, calls=calls)
        for name, arguments in calls:
            if name == "remember":
                self.stored[arguments["key"]] = arguments["value"]
                result = STORED
            else:
                result = self.stored.get(arguments["key"], MISSING)
            self.messages.append(Message("tool", result))

    # ---- system ----

    def system(self, kinds=(), persona=0.3, fact=0.0):
        """A system message: rules, sometimes a name for the assistant, sometimes a fact about the user."""
        text = self.rng.choice(SYSTEMS)
        if self.rng.random() < persona:
            self.bot_name, self.bot_index = self.pools.name(self.rng), 0
            text = self.rng.choice(PERSONAS).replace("{v}", self.bot_name) + " " + text
        fitting = [(kind, say) for kind in kinds for say in kind.says if say.startswith("My ")]
        if fitting and self.rng.random() < fact:
            kind, say = self.rng.choice(fitting)
            value = kind.draw(self.rng)
            sentence = "The user's " + say[3:].replace("{v}", value)
            text += " " + sentence
            self.known[kind.key] = Known(value, 0, sentence)
        self.messages.append(Message("system", text))

    # ---- facts ----

    def _draw(self, kind, kinds):
        """A value; sometimes one that is easily mistaken for a value that was said before."""
        if kind.open and self.rng.random() < self.near:
            alike = [self.known[q.key].value for q in kinds if q.key in self.known and q.draw == kind.draw]
            alike = [value for value in alike if value]
            near = self.pools.near(self.rng, self.rng.choice(alike)) if alike else None
            if near:
                return near
        before = self.known.get(kind.key)
        for _ in range(8):
            value = kind.draw(self.rng)
            if not before or value != before.value:
                break
        return value

    def _sentence(self, kind, value):
        rng, text = self.rng, self.rng.choice(kind.says).replace("{v}", value)
        k = rng.random()
        if kind.key in self.known:
            if k < 0.4:
                return rng.choice(("Now ", "By now ")) + low(text)
            if k < 0.6:
                return "No, " + low(text) if k < 0.5 else text[:-1] + " now."
            return text
        return rng.choice(("By the way, ", "You should know: ")) + low(text) if k < 0.08 else text

    def state(self, stated, kinds=(), echo=False):
        """One user message that states one or more facts."""
        values = [self._draw(kind, kinds) for kind in stated]
        said = [self._sentence(kind, value) for kind, value in zip(stated, values)]
        kind, value = stated[-1], values[-1]
        # The likeliest reply repeats the value: it practises the copying, and greedy decoding has no tie to break.
        ack = self.rng.choice([*kind.acks, *([] if kind.lower else [ECHO, ECHO])])
        if len(stated) > 1:
            ack = "Noted."
        elif echo and "{v}" not in ack and not kind.lower:
            ack = ECHO
        before = [talk.remark(self.rng)[0]] if self.rng.random() < self.chatty else []
        index = len(self.messages)
        self._user(" ".join(before + said))
        if self.mode.tools:
            calls = [("remember", {"key": q.label, "value": v}) for q, v in zip(stated, values)]
            self._call(calls, "I will store that.")
        reasoning = "It is stored." if self.mode.tools else "That is a fact to remember."
        self._assistant(capital(ack.replace("{v}", value)), reasoning, value=value if "{v}" in ack else None)
        for kind, value, sentence in zip(stated, values, said):
            self.known[kind.key] = Known(value, index, sentence, changed=kind.key in self.known)

    def take_back(self, kind):
        """The thing is gone: nothing is known about it any more."""
        index = len(self.messages)
        self._user(kind.gone)
        self._assistant(self.rng.choice(("I see.", "Noted.", "I am sorry to hear that.")), "That is gone.")
        self.known[kind.key] = Known(None, index, kind.gone, changed=True)

    # ---- questions ----

    def ask(self, kind, plain=False):
        """A question. Some ask for a short answer: then the value must be found from the question alone."""
        rng, question, answer = self.rng, self.rng.choice(kind.asks), kind.answer
        k = 1.0 if plain else rng.random()
        if k < 0.2:
            in_a_word = k < 0.1 and not kind.lower
            prefix, answer = ("In one word: ", "{v}.") if in_a_word else ("In short: ", "It is {v}.")
            question = prefix + low(question)
        elif k < 0.3:
            question = rng.choice(("Tell me: ", "Please tell me: ", "One question: ")) + low(question)
        if self.mode.tools:
            self._ask_tools(kind, question, answer)
            return
        known, index = self.known.get(kind.key), len(self.messages)
        self._user(question)
        if known is None or known.value is None:
            self._assistant(UNKNOWN, self._why(known), answers=True)
        else:
            self._assistant(self._filled(answer, known.value), self._why(known), value=known.value, answers=True,
                            since=index - known.index)

    def _ask_tools(self, kind, question, answer):
        if kind.key not in self.known and kind.label not in self.stored and self.rng.random() < 0.5:
            self.stored[kind.label] = kind.draw(self.rng)  # kept in an earlier session
        self._user(question)
        self._call([("recall", {"key": kind.label})], "I look that up.")
        value = self.messages[-1].content
        if value == MISSING:
            self._assistant(UNKNOWN, "The tool does not know it.", answers=True)
        else:
            self._assistant(self._filled(answer, value), f"The tool says: {value}.", value=value, answers=True, since=1)

    @staticmethod
    def _filled(answer, value):
        return answer.replace("{v}", capital(value) if answer == "{v}." else value)

    def _why(self, known):
        """The visible reasoning of an answer."""
        if known is None:
            return "No message said that."
        first = 1 if self.messages[0].role == "system" else 0
        if known.index < first:
            who = "The system message said: "
        elif known.index == first:
            who = "The first message said: "
        else:
            who = "Later the user said: " if known.changed else "The user said: "
        return who + low(known.sentence)

    def ask_bot_name(self):
        index = len(self.messages)
        self._user(self.rng.choice(("What is your name?", "Who are you?")))
        named = self.bot_index >= 0
        reasoning = f"The system message said: my name is {self.bot_name}." if named else f"My name is {self.bot_name}."
        self._assistant(f"My name is {self.bot_name}.", reasoning, value=self.bot_name, answers=True,
                        since=index - self.bot_index if named else -1)

    def filler(self, rng=None):
        said, reply = talk.filler(rng or self.rng, self.chatty)
        self._user(said)
        self._assistant(reply, "This is small talk.")

