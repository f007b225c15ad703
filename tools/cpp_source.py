"""C++ source text for the checkers: code without comments and literals, as lines and as tokens.

Not a parser: it knows comments, string and character literals (raw ones too), preprocessor lines
and tokens, which is what rules about words, includes and sizes need. Line numbers stay true.
"""

import re
from dataclasses import dataclass, field

RAW_STRING = re.compile(r'(?:u8|u|U|L)?R"([^ ()\\\t\n]{0,16})\(')
TOKEN = re.compile(r"[A-Za-z_]\w*|\d(?:[\w.]|'(?=\w))*|::|->|<=|==|!=|&&|\|\||\S")


@dataclass
class Token:
    text: str
    line: int


@dataclass
class Source:
    """One file: `lines` as written, `code` the same lines with comments and literals emptied."""

    lines: list
    code: list
    comments: list = field(default_factory=list)  # (line, text)
    raw_string_lines: set = field(default_factory=set)

    def tokens(self):
        """The tokens outside preprocessor lines."""
        result = []
        continued = False
        for number, line in enumerate(self.code, 1):
            directive = continued or line.lstrip().startswith("#")
            continued = directive and line.rstrip().endswith("\\")
            if not directive:
                result += [Token(text, number) for text in TOKEN.findall(line)]
        return result


class _Stripper:
    """Walks a text once; literals become empty quotes, comments become nothing."""

    def __init__(self, text):
        self.text = text
        self.position = 0
        self.line = 1
        self.out = []
        self.comments = []
        self.raw_string_lines = set()

    def run(self):
        while self.position < len(self.text):
            self._step()
        return Source(self.text.split("\n"), "".join(self.out).split("\n"), self.comments,
                      self.raw_string_lines)

    def _step(self):
        text, at = self.text, self.position
        raw = RAW_STRING.match(text, at) if text[at] in "uULR" and self._starts_word() else None
        if text.startswith("//", at):
            self._comment(self._end_of_line_comment(at))
        elif text.startswith("/*", at):
            end = text.find("*/", at + 2)
            self._comment(len(text) if end < 0 else end + 2)
        elif raw:
            end = text.find(f'){raw.group(1)}"', raw.end())
            end = len(text) if end < 0 else end + len(raw.group(1)) + 2
            first = self.line
            self.out.append('""')
            self._advance(end, keep=False)
            self.raw_string_lines.update(range(first, self.line + 1))
        elif text[at] == '"' and not self._in_include():
            self._quoted('"')
        elif text[at] == "'" and self._starts_word():
            self._quoted("'")
        else:
            self._advance(at + 1, keep=True)

    def _starts_word(self):
        """False inside a word or number, where ' separates digits and R or u is a letter."""
        if self.position == 0:
            return True
        before = self.text[self.position - 1]
        if before.isalnum() or before == "_":
            return self.text[self.position] == "'" and before in "uUL"
        return True

    def _in_include(self):
        line = self.text[self.text.rfind("\n", 0, self.position) + 1:self.position]
        return re.fullmatch(r'\s*#\s*include\s*("[^"]*)?', line) is not None

    def _end_of_line_comment(self, at):
        end = self.text.find("\n", at)
        while end > 0 and self.text[end - 1] == "\\":
            end = self.text.find("\n", end + 1)
        return len(self.text) if end < 0 else end

    def _comment(self, end):
        for offset, part in enumerate(self.text[self.position:end].split("\n")):
            self.comments.append((self.line + offset, part))
        self.out.append(" ")
        self._advance(end, keep=False)

    def _quoted(self, quote):
        at = self.position + 1
        while at < len(self.text) and self.text[at] not in (quote, "\n"):
            at += 2 if self.text[at] == "\\" else 1
        self.out.append(quote * 2)
        self._advance(min(at + 1, len(self.text)), keep=False)

    def _advance(self, end, keep):
        piece = self.text[self.position:end]
        newlines = piece.count("\n")
        self.out.append(piece if keep else "\n" * newlines)
        self.line += newlines
        self.position = end


def parse(text):
    """The Source of a file's text."""
    return _Stripper(text).run()
