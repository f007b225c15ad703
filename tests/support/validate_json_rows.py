"""Says for every line {"schema": ..., "text": ...} of a file whether the text is JSON that fits.

Prints one character a row: 1 it fits, 0 it does not, x it is no JSON. The validator is the package
python3-jsonschema, which shares nothing with the program.
"""

import json
import sys

import jsonschema


def verdict(schema, text):
    try:
        instance = json.loads(text)
    except ValueError:
        return "x"
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    return "1" if validator.is_valid(instance) else "0"


with open(sys.argv[1], encoding="utf-8") as rows:
    for line in rows:
        row = json.loads(line)
        print(verdict(row["schema"], row["text"]), end="")
