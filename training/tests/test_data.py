"""Training conversations: what must not be in them, what they claim about facts, and how they become tokens."""
import random
import re
from collections import Counter

import pytest

import facts
import profiles
import talk
import values
from encoder import PAD_ID
from values import Pools, is_held, pieces

WEIGHTS = dict(control=0.1, user=0.2, reply=1.0, answer=4.0, first=8.0, value=6.0)
SCANNED = 10_000


def words_of_the_templates():
    """Every word that a conversation without made-up values may have."""
    class Empty(Pools):
        def word(self, rng):
            return "x"

        def code(self, rng, digits=0):
            return "1"

        def near(self, rng, value):
            return None
    source, rng, words = profiles.Source(None), random.Random(3), set()
    source.pools = Empty(novelty=1.0)
    source.kinds = facts.make_kinds(source.pools)
    for profile in profiles.PROFILES:
        for _ in range(400):
            for message in source.converse(rng, profile, messages=40).messages:
                words |= set(re.findall(r"\w+", f"{message.content} {message.reasoning}"))
    return words | set(values.NAMES) | set(values.PLACES)


def words(conversation):
    for message in conversation.messages:
        yield from re.findall(r"[^\W\d]+|\d{3,}", f"{message.content} {message.reasoning or ''}")
        for _, arguments in message.calls:
            yield from re.findall(r"[^\W\d]+|\d{3,}", " ".join(arguments.values()))


def test_training_never_sees_values_of_the_evaluation():
    known, sources = words_of_the_templates(), [profiles.Source(None, novelty) for novelty in (0.3, 0.8)]
    rng, made_up = random.Random(11), 0
    for i in range(SCANNED):
        conv = sources[i % 2].converse(rng, rng.choice(list(profiles.PROFILES)), messages=24)
        for word in set(words(conv)):
            if word not in known and word.capitalize() not in known and word.lower() not in known:
                made_up += 1
                assert not is_held(word), f"{word} belongs to the evaluation"
    assert made_up > 2 * SCANNED


def test_held_pools_draw_only_values_that_training_never_sees():
    pools, rng = Pools(held=True), random.Random(5)
    kinds = [kind for kind in facts.make_kinds(pools) if kind.open]
    for _ in range(5000):
        value = rng.choice(kinds).draw(rng)
        parts = [piece for piece in pieces(value) if piece not in ("New", "Port", "Saint", "Upper")]
        assert parts and all(is_held(part) for part in parts), value


def test_no_listed_name_is_held_out_as_well():
    assert not set(values.NAMES + values.PLACES) & set(values.HELD_NAMES + values.HELD_PLACES)
    assert all(is_held(name) for name in values.HELD_NAMES + values.HELD_PLACES)


def test_near_copies_differ_in_one_place():
    pools, rng = Pools(), random.Random(2)
    made = 0
    for _ in range(2000):
        value = rng.choice((pools.name, pools.place, pools.code, pools.password))(rng)
        near = pools.near(rng, value)
        if near is None:
            continue
        made += 1
        assert len(near) == len(value) and sum(a != b for a, b in zip(near, value)) == 1
    assert made > 1500


def test_novelty_is_the_share_of_made_up_names():
    rng, counts = random.Random(4), {}
    for novelty in (0.2, 0.8):
        names = [Pools(novelty=novelty).name(rng).split()[0] for _ in range(4000)]
        counts[novelty] = sum(name not in values.NAMES for name in names) / len(names)
    assert counts == pytest.approx({0.2: 0.2, 0.8: 0.8}, abs=0.03)


def patterns(kind):
    """What a message must match to say something about a fact."""
    value = {"job": r"an? [a-z]+", "colour": "|".join(values.COLOURS)}.get(kind.attribute, r"[\w ]+")
    for say in [*kind.says, *([kind.gone] if kind.gone else [])]:
        text = re.escape(say.removeprefix("My ")).replace(r"\{v\}", f"(?:{value})")
        start = r"\b(?:my|user's) " if say.startswith("My ") else r"\b"
        yield re.compile(start + text.replace(r"\.", r"(?: now)?\."), re.I)


@pytest.mark.parametrize("profile", ["drill", "changed", "chat", "system", "long"])
def test_answers_follow_from_what_was_said(profile):
    """The value of an answer stands in the message that it is said to come from; no later one is about the fact."""
    source, rng, checked = profiles.Source(None), random.Random(profile), Counter()
    asks = {ask.lower(): kind for kind in source.kinds for ask in kind.asks}
    says = {kind.key: list(patterns(kind)) for kind in source.kinds}
    for _ in range(150):
        messages = source.converse(rng, profile, messages=60).messages
        for i, message in enumerate(messages):
            question = messages[i - 1].content.lower().split(": ")[-1]
            if not message.answers or question not in asks:
                continue
            about = [j for j in range(i - 1) if messages[j].role != "assistant"
                     and any(say.search(messages[j].content) for say in says[asks[question].key])]
            if message.content == facts.UNKNOWN:
                checked["unknown"] += 1
                assert message.since == -1
            else:
                source_index = i - 1 - message.since
                assert message.value in messages[source_index].content
                assert max(about) == source_index
                checked["known"] += 1
    assert checked["known"] > 100 and checked["unknown"] > 20


def test_pieces_at_spaces_are_encoded_as_the_whole_text(encoder):
    source, rng = profiles.Source(encoder), random.Random(9)
    for profile in profiles.PROFILES:
        for message in source.converse(rng, profile, messages=200).messages:
            if message.content:
                whole = encoder.tokenizer.encode(message.content, add_special_tokens=False)
                ids, ends = encoder.plain(message.content)
                assert ids == whole.ids and ends == [end for _, end in whole.offsets]


@pytest.mark.parametrize("profile", list(profiles.PROFILES))
def test_a_sequence_is_the_prompt_and_its_answers(profile, encoder):
    source, rng = profiles.Source(encoder), random.Random(f"sequence/{profile}")
    length = 1280 if profile == "tools" else 512
    for _ in range(20):
        conv = source.converse(rng, profile, tokens=length + 8)
        ids, weights, answers, starts = encoder.sample(conv, length, WEIGHTS)
        assert len(ids) == len(weights) == length
        last = len(conv.messages) - 1
        full = encoder.prompt_ids(conv.messages[:last], conv.mode) + encoder.reply_ids(conv.messages[last], conv.mode)
        if conv.mode.thinking == conv.mode.keeps() or last == max(i for i, m in enumerate(conv.messages) if m.answers):
            assert (full + [PAD_ID] * length)[:length] == ids
        assert ids.count(PAD_ID) < 64
        for start, end, _ in answers:
            assert ids[end - 1] == encoder.eos and encoder.eos not in ids[start:end - 1]
            assert start in starts and max(weights[start:end]) == WEIGHTS["first"]


def test_weights_point_at_the_value(encoder):
    source, rng, seen = profiles.Source(encoder), random.Random(21), 0
    marked = {**dict.fromkeys(WEIGHTS, 0.0), "value": 1.0}
    for _ in range(20):
        conv = source.converse(rng, "drill", tokens=300)
        ids, weights, answers, _ = encoder.sample(conv, 1000, marked)
        asked = [message for message in conv.messages if message.answers]
        assert len(asked) == len(answers)
        for message, (start, end, _) in zip(asked, answers):
            text = encoder.tokenizer.decode([t for t, w in zip(ids[start:end], weights[start:end]) if w == 1])
            # A token may reach over the end of a value: "Milo" and the full stop.
            assert text.strip(" .").lower() == (message.value or "").lower()
            seen += bool(text)
    assert seen > 100


def test_the_same_generator_gives_the_same_sequences(encoder):
    first, second = ([profiles.Source(encoder).sequence(random.Random("7/3/1"), profile, 300, WEIGHTS)
                      for profile in profiles.PROFILES] for _ in range(2))
    assert first == second


def test_small_talk_answers_the_last_sentence():
    rng = random.Random(6)
    for _ in range(500):
        text, reply = talk.filler(rng, chatty=0.6)
        subject = re.search(r"the [\w ]+?(?= (?:choose|finds|got|close|did|must|gives|say|find it|will get)\b)", reply)
        if subject:
            assert subject.group().split()[-1] in text.split(". ")[-1]
