"""What the Python scripts share: named checks, one result line, and prompts.

A script runs its checks in order; one that fails does not stop the others. finish() prints one line
`RESULT {json}` with the names that passed, what failed and why, and notes, for run.py to read.
"""

import json
import os
import sys
import traceback

URL = os.environ["LOCKET_URL"]
MODEL = os.environ["LOCKET_MODEL"]
KEY = os.environ["LOCKET_KEY"]
MAX_WHY = 600

CITIES = ["Paris", "Rome", "Berlin"]
WEATHER_PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string", "enum": CITIES}, "tomorrow": {"type": "boolean"}},
    "required": ["city", "tomorrow"],
    "additionalProperties": False,
}
QUESTION = "What is the weather in Paris?"
WEATHER_RESULT = "Sunny, 21 degrees."
GREETING = "Hello!"


class Checks:
    """Named checks of one client. Use an instance as a decorator; the function runs at once."""

    def __init__(self):
        self.passed = []
        self.failed = []
        self.notes = []

    def __call__(self, name):
        def run(function):
            try:
                function()
            except Exception as error:  # whatever a client raises is what we report
                traceback.print_exc()
                why = f"{type(error).__name__}: {error}".replace("\n", " ")
                self.failed.append({"name": name, "why": why[:MAX_WHY]})
            else:
                self.passed.append(name)
            return function
        return run

    def note(self, text):
        self.notes.append(text)

    def finish(self):
        print("RESULT " + json.dumps(
            {"passed": self.passed, "failed": self.failed, "notes": self.notes}))
        sys.exit(1 if self.failed else 0)


def expect(condition, message, found=None):
    if not condition:
        raise AssertionError(message if found is None else f"{message}; found {found!r}")


def expect_equal(found, wanted, what):
    expect(found == wanted, f"{what} should be {wanted!r}", found)


def expect_weather(arguments):
    expect(isinstance(arguments, dict), "the arguments should be an object", arguments)
    expect(arguments.get("city") in CITIES, f"city should be one of {CITIES}", arguments)
    expect(isinstance(arguments.get("tomorrow"), bool), "tomorrow should be a boolean", arguments)


def expect_hit(hit, prompt, least=0.9):
    """At least this share of a prompt of a second turn was remembered."""
    expect(prompt > 1000, "the prompt should be long enough to tell", prompt)
    expect(hit is not None and hit > least * prompt,
           f"more than {least:.0%} of {prompt} prompt tokens should be hits", hit)


def long_prompt(name):
    """A system prompt of some thousand tokens that no other script sends."""
    lines = [f"You are a friendly helper of the {name} test."]
    for number in range(90):
        lines.append(f"Note {number}: my friend number {number} painted the old house near the "
                     f"river yesterday, and the garage code is {number * 37 % 1000}.")
    return "\n".join(lines)
