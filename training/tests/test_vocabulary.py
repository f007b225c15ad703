"""The vocabulary: its size, the release's control tokens, and what makes names easy to copy."""
import json
import random

import vocabulary
from values import Pools


def test_size_and_control_tokens(encoder):
    tokenizer = encoder.tokenizer
    assert tokenizer.get_vocab_size() == vocabulary.VOCAB_SIZE
    assert [tokenizer.id_to_token(i) for i in range(3)] == vocabulary.FIRST
    first_control = vocabulary.VOCAB_SIZE - len(vocabulary.CONTROL)
    last = [tokenizer.id_to_token(i) for i in range(first_control, vocabulary.VOCAB_SIZE)]
    assert last == vocabulary.CONTROL


def test_every_byte_has_a_token(encoder):
    text = "".join(map(chr, range(1, 0x250))) + "日本語 🙂 \t\r\n"
    assert encoder.tokenizer.decode(encoder.tokenizer.encode(text, add_special_tokens=False).ids) == text


def test_digits_stay_alone(encoder):
    assert len(encoder.plain("482913")[0]) == 6


def test_names_are_the_same_tokens_at_the_start_of_a_sentence_and_inside_it(encoder):
    rng, pools, same = random.Random(3), Pools(), 0
    for _ in range(1000):
        name = pools.word(rng).capitalize()
        same += encoder.plain(f"x {name}")[0][-1:] == encoder.plain(name)[0][-1:] and (
            encoder.plain(f"x {name}")[0][2:] == encoder.plain(name)[0][1:])
    assert same > 900


def test_the_config_names_the_control_tokens(vocabulary_folder):
    config = json.loads((vocabulary_folder / "tokenizer_config.json").read_text())
    assert (config["bos_token"]["content"], config["eos_token"]["content"]) == tuple(vocabulary.FIRST[:2])
