#!/usr/bin/env python3
"""Checks the size limits of the code. Usage: check_sizes.py [--root FOLDER]

Limits: lines of a file and columns of a line; lines, parameters and nesting of a function; no bool
parameter in a public function of a header under src/; no open task without the number of its issue.
Every finding is one line: file:line: [rule] what is wrong.
"""

import re
from pathlib import Path

import cpp_functions
import cpp_source
import findings

FILE_LINES = 400
TEST_FILE_LINES = 600
FUNCTION_LINES = 60
LONG_FUNCTION_LINES = 100  # kernels, tests, tables
PARAMETERS = 6
COLUMNS = 100
NESTING = 3

CPP_FOLDERS = ("src", "tests", "bench")
CPP_SUFFIXES = {".h", ".cc", ".cu"}
PYTHON_FOLDERS = ("tools", "tests")
# Written in two parts, so that this file does not hold the words it looks for.
OPEN_TASK = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b(?!\s*\(?#\d+)")
TABLE_ROW = re.compile(r'^\s*(case\b|default\b|\{.|"|\d)|\},$')


def is_table(lines):
    """Whether most lines of a function are rows: case labels, braced rows, literals."""
    inside = [line for line in lines[1:-1] if line.strip()]
    rows = sum(1 for line in inside if TABLE_ROW.search(line))
    return bool(inside) and rows * 2 > len(inside)


class Checker:
    def __init__(self, root):
        self.root = Path(root)
        self.findings = []

    def run(self):
        for folder in CPP_FOLDERS:
            for path in self._files(folder, CPP_SUFFIXES):
                self._check_cpp(path)
        for folder in PYTHON_FOLDERS:
            for path in self._files(folder, {".py"}):
                self._check_python(path)
        return self.findings

    def _files(self, folder, suffixes):
        return [path for path in sorted((self.root / folder).rglob("*"))
                if path.suffix in suffixes and path.is_file()
                and "data" not in path.relative_to(self.root).parts]

    def _report(self, place, line, rule, message):
        self.findings.append(findings.Finding(place, line, rule, message))

    def _check_cpp(self, path):
        place = path.relative_to(self.root).as_posix()
        source = cpp_source.parse(path.read_text(encoding="utf-8"))
        self._check_lines(place, source.lines, source.raw_string_lines)
        self._check_open_tasks(place, source.comments)
        tokens = source.tokens()
        for function in cpp_functions.find_functions(tokens):
            self._check_parameters(place, function)
            if function.body is not None:
                self._check_body(place, function, source, tokens)

    def _check_python(self, path):
        place = path.relative_to(self.root).as_posix()
        lines = path.read_text(encoding="utf-8").split("\n")
        self._check_lines(place, lines, set())
        comments = [(number, line.partition("#")[2]) for number, line in enumerate(lines, 1)]
        self._check_open_tasks(place, comments)

    def _check_lines(self, place, lines, raw_string_lines):
        count = len(lines) - (lines[-1] == "")
        limit = TEST_FILE_LINES if place.startswith("tests/") else FILE_LINES
        if count > limit:
            self._report(place, count, "file-length", f"{count} lines; the limit is {limit}")
        for number, line in enumerate(lines, 1):
            if len(line) > COLUMNS and number not in raw_string_lines:
                self._report(place, number, "line-length",
                             f"{len(line)} columns; the limit is {COLUMNS}")

    def _check_open_tasks(self, place, comments):
        for number, text in comments:
            found = OPEN_TASK.search(text)
            if found:
                self._report(place, number, "open-task",
                             f"{found.group(1)} without an issue number, as in (#12)")

    def _check_parameters(self, place, function):
        count = len(function.parameters)
        if count > PARAMETERS:
            self._report(place, function.line, "parameters",
                         f"{function.name} has {count} parameters; the limit is {PARAMETERS}: "
                         "make a struct")
        is_header = place.startswith("src/") and place.endswith(".h") and "/internal/" not in place
        if is_header and function.is_public and any(p.is_bool for p in function.parameters):
            self._report(place, function.line, "bool-parameter",
                         f"{function.name} takes a bool: make it an enum class or a struct field")

    def _check_body(self, place, function, source, tokens):
        lines = source.code[function.line - 1:function.end_line]
        is_long = place.startswith(("src/kernels/", "tests/")) or is_table(lines)
        limit = LONG_FUNCTION_LINES if is_long else FUNCTION_LINES
        if len(lines) > limit:
            self._report(place, function.line, "function-length",
                         f"{function.name} has {len(lines)} lines; the limit is {limit}")
        depth, line = cpp_functions.nesting(tokens, function)
        if depth > NESTING:
            self._report(place, line, "nesting",
                         f"{function.name} nests {depth} control statements; the limit is "
                         f"{NESTING}: return early or name a step")


def check(root):
    """All findings of the tree under `root`."""
    return Checker(root).run()


if __name__ == "__main__":
    findings.main("check_sizes", __doc__, check)
