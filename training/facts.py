"""The kinds of facts: how each is said, asked, answered and acknowledged. {v} stands for the value."""
from dataclasses import dataclass, field
from typing import Callable

import values

UNKNOWN = "I don't know that yet."

PETS = "cat dog horse rabbit parrot pony goat hamster".split()
PEOPLE = """sister brother mother father uncle aunt son daughter teacher boss neighbour friend cousin doctor grandmother
grandfather""".split()
OBJECTS = "car bike house door coat hat kitchen boat tent umbrella sofa scarf bag lamp".split()
LOCKS = "door locker gate safe garage alarm bank phone".split()
NUMBERS = "room ticket flight locker".split()
SECRETS = "computer email garden".split()
CALLED = "street school boat village shop team".split()


@dataclass(frozen=True)
class Kind:
    key: str  # entity and attribute, "cat.name"
    says: list[str]
    asks: list[str]
    answer: str
    acks: list[str]
    draw: Callable
    label: str  # the key that the tools use, "cat name"
    open: bool = False  # whether values are made up, so that some are kept for the evaluation
    lower: bool = False  # never put at the start of a sentence
    gone: str = ""  # says that there is no such thing any more
    entity: str = field(init=False)
    attribute: str = field(init=False)

    def __post_init__(self):
        entity, _, attribute = self.key.partition(".")
        object.__setattr__(self, "entity", entity)
        object.__setattr__(self, "attribute", attribute or entity)

    def is_neighbour(self, other):
        return self.key != other.key and (self.entity == other.entity or self.attribute == other.attribute)


def article(word):
    return ("an " if word[0] in "aeiou" else "a ") + word


def _names(pools):
    yield Kind("me.name", ["My name is {v}.", "Call me {v}.", "I am called {v}."],
               ["What is my name?", "Do you know my name?", "Who am I?"], "Your name is {v}.",
               ["Hello, {v}!", "Nice to meet you, {v}."], pools.name, "name", open=True)
    acks = ["I will remember that.", "{v} is a good name.", "Noted."]
    for e in PETS:
        says = [f"My {e} is called {{v}}.", f"My {e}'s name is {{v}}.", f"I have {article(e)} called {{v}}."]
        yield Kind(f"{e}.name", says,
                   [f"What is my {e} called?", f"What is my {e}'s name?", f"Do you remember my {e}'s name?"],
                   f"Your {e} is called {{v}}.",
                   ["{v} is a lovely name.", "I will remember that.", "Say hello to {v}!"],
                   pools.name, f"{e} name", open=True, gone=f"I don't have {article(e)} any more.")
    for e in PEOPLE:
        yield Kind(f"{e}.name", [f"My {e} is called {{v}}.", f"My {e}'s name is {{v}}."],
                   [f"What is my {e} called?", f"What is my {e}'s name?", f"Do you remember my {e}'s name?"],
                   f"Your {e} is called {{v}}.", acks, pools.name, f"{e} name", open=True)
    for person in ("sister", "brother", "friend", "neighbour", "uncle"):
        for pet in ("cat", "dog", "horse"):
            whose = f"{person}'s {pet}"
            yield Kind(f"{whose}.name", [f"My {whose} is called {{v}}."], [f"What is my {whose} called?"],
                       f"Your {whose} is called {{v}}.", acks, pools.name, f"{whose} name", open=True)
    for e in CALLED:
        yield Kind(f"{e}.called", [f"My {e} is called {{v}}.", f"The name of my {e} is {{v}}."],
                   [f"What is my {e} called?", f"What is the name of my {e}?"], f"Your {e} is called {{v}}.", acks,
                   pools.place, f"{e} name", open=True)


def _places(pools):
    acks = ["{v} is a nice place.", "I will remember that.", "Noted."]
    for key, label, says, ask, answer in (
            ("me.live", "home", ["I live in {v}.", "My home is in {v}."], ["Where do I live?", "Where is my home?"],
             "You live in {v}."),
            ("me.born", "birthplace", ["I was born in {v}."], ["Where was I born?"], "You were born in {v}."),
            ("me.work", "office", ["I work in {v}.", "My office is in {v}."],
             ["Where do I work?", "Where is my office?"], "You work in {v}."),
            ("me.grew", "childhood home", ["I grew up in {v}."], ["Where did I grow up?"], "You grew up in {v}."),
            ("me.trip", "next trip", ["I will travel to {v}.", "My next trip goes to {v}."],
             ["Where will I travel?", "Where does my next trip go?"], "You will travel to {v}.")):
        yield Kind(key, says, ask, answer, acks, pools.place, label, open=True)
    for e in ("sister", "brother", "uncle", "aunt", "friend", "cousin"):
        yield Kind(f"{e}.live", [f"My {e} lives in {{v}}."], [f"Where does my {e} live?"], f"Your {e} lives in {{v}}.",
                   ["{v} is a nice place.", "I see.", "Noted."], pools.place, f"{e} home", open=True)


def _codes(pools):
    acks = ["I will keep it safe.", "Noted.", "{v}, noted."]
    for e in LOCKS:
        yield Kind(f"{e}.code", [f"My {e} code is {{v}}.", f"The code of my {e} is {{v}}."],
                   [f"What is my {e} code?", f"What is the code of my {e}?"], f"Your {e} code is {{v}}.", acks,
                   pools.code, f"{e} code", open=True)
    for e in NUMBERS:
        yield Kind(f"{e}.number", [f"My {e} number is {{v}}.", f"The number of my {e} is {{v}}."],
                   [f"What is my {e} number?", f"What is the number of my {e}?"], f"Your {e} number is {{v}}.", acks,
                   pools.code, f"{e} number", open=True)
    for e in SECRETS:
        yield Kind(f"{e}.password", [f"My {e} password is {{v}}.", f"The password of my {e} is {{v}}."],
                   [f"What is my {e} password?", f"What is the password of my {e}?"], f"Your {e} password is {{v}}.",
                   ["I will keep it safe.", "Noted."], pools.password, f"{e} password", open=True, lower=True)


def _closed(pools):
    for e in OBJECTS:
        gone = "" if e in ("door", "kitchen") else f"I don't have {article(e)} any more."
        yield Kind(f"{e}.colour", [f"My {e} is {{v}}.", f"I have {article(e)} that is {{v}}."],
                   [f"What colour is my {e}?"], f"Your {e} is {{v}}.",
                   ["That sounds pretty.", "I like {v}.", "Noted."], pools.pick(values.COLOURS), f"{e} colour",
                   gone=gone)
    yield Kind("me.age", ["I am {v} years old."], ["How old am I?"], "You are {v} years old.",
               ["Noted.", "That is a good age."], pools.age, "age")
    for e in ("sister", "brother", "mother", "father", "son", "daughter"):
        yield Kind(f"{e}.age", [f"My {e} is {{v}} years old."], [f"How old is my {e}?"],
                   f"Your {e} is {{v}} years old.", ["Noted.", "I see.", "That is a good age."], pools.age, f"{e} age")
    job, acks = pools.pick([article(j) for j in values.JOBS]), ["That is a fine job.", "I see."]
    yield Kind("me.job", ["I work as {v}.", "I am {v}."], ["What is my job?", "What do I do for work?"],
               "You work as {v}.", acks, job, "job")
    for e in ("sister", "brother", "mother", "father", "neighbour"):
        yield Kind(f"{e}.job", [f"My {e} works as {{v}}.", f"My {e} is {{v}}."],
                   [f"What is my {e}'s job?", f"What does my {e} do for work?"], f"Your {e} works as {{v}}.", acks, job,
                   f"{e} job")
    yield Kind("me.hobby", ["My hobby is {v}.", "In my free time I like {v}."],
               ["What is my hobby?", "What do I like in my free time?"], "Your hobby is {v}.",
               ["That sounds like fun.", "{v} is fun."], pools.pick(values.HOBBIES), "hobby")
    for what, pool in (("colour", values.COLOURS), ("food", values.FOODS), ("drink", values.DRINKS),
                       ("fruit", values.FRUITS), ("flower", values.FLOWERS), ("animal", values.ANIMALS),
                       ("sport", values.SPORTS), ("season", values.SEASONS)):
        yield Kind(f"favourite {what}.best", [f"My favourite {what} is {{v}}.", f"The {what} I like best is {{v}}."],
                   [f"What is my favourite {what}?", f"Which {what} do I like best?"],
                   f"Your favourite {what} is {{v}}.", ["Good choice.", "I like {v} too.", "Noted."], pools.pick(pool),
                   f"favourite {what}")
    yield Kind("me.birthday", ["My birthday is on {v}.", "I was born on {v}."], ["When is my birthday?"],
               "Your birthday is on {v}.", ["I will remember that.", "Noted."], pools.birthday, "birthday")


def make_kinds(pools):
    return [*_names(pools), *_places(pools), *_codes(pools), *_closed(pools)]


def easy(kinds):
    """Those whose values are single well-known words: what a model can learn first."""
    return [kind for kind in kinds if kind.attribute in ("colour", "best", "hobby")]
