import os
import sys
from pathlib import Path

import pytest

ROOM = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOM))


@pytest.fixture(scope="session")
def locket():
    """The engine's program, for the tests that compare with it."""
    program = os.environ.get("LOCKET", "")
    if not program:
        pytest.skip("LOCKET does not name the program")
    return program


@pytest.fixture(scope="session")
def vocabulary_folder(tmp_path_factory):
    """A folder with a tokenizer made from nothing."""
    import vocabulary
    folder = tmp_path_factory.mktemp("vocabulary")
    vocabulary.write(folder)
    return folder


@pytest.fixture(scope="session")
def encoder(vocabulary_folder):
    from tokenizers import Tokenizer

    from encoder import Encoder
    return Encoder(Tokenizer.from_file(str(vocabulary_folder / "tokenizer.json")))
