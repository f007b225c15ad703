#!/usr/bin/env python3
"""Checks that src/ keeps the rooms of cmake/rooms.cmake. Usage: check_rooms.py [--root FOLDER]

Fails on an include that the table of rooms does not allow, on a header of another room's
internal/, on a third-party header outside its one place, on words that belong to one room
(coroutines, threads, files, clocks, printing), and if src/README.md does not name exactly the rooms
that exist. Every finding is one line: file:line: [rule] what is wrong.
"""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

import cpp_source
import findings
import room_rules

ROOM_CALL = re.compile(r"^\s*locket_room\(([^)]*)\)", re.MULTILINE)
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:<([^>]+)>|"([^"]+)")')
CONDITION = re.compile(r"^\s*#\s*(?:if|ifdef|ifndef|elif|elifdef|elifndef)\b(.*)")
README_ROOM = re.compile(r"^##\s+`?(\w+)`?\s*$", re.MULTILINE)
SOURCE_SUFFIXES = {".h", ".cc", ".cu"}


@dataclass
class Room:
    name: str
    level: int
    may_include: list
    line: int


def parse_rooms(text):
    """The locket_room() calls of rooms.cmake, in order; the function's own definition is none."""
    rooms = []
    text = re.sub(r"#[^\n]*", "", text)
    for call in ROOM_CALL.finditer(text):
        words = call.group(1).split()
        lists = {"LEVEL": [], "MAY_INCLUDE": [], "LIBRARIES": []}
        key = None
        for word in words[1:]:
            if word in lists:
                key = word
            elif key is not None:
                lists[key].append(word)
        level = int(lists["LEVEL"][0]) if lists["LEVEL"] else -1
        line = text.count("\n", 0, call.start(1)) + 1
        rooms.append(Room(words[0], level, lists["MAY_INCLUDE"], line))
    return rooms


def is_allowed(path, places):
    return any(fnmatchcase(path, place) for place in places)


class Checker:
    def __init__(self, root):
        self.root = Path(root)
        self.source = self.root / "src"
        self.findings = []
        self.rooms = {}

    def run(self):
        self._check_table()
        self._check_readme()
        for path in sorted(self.source.rglob("*")):
            if path.suffix in SOURCE_SUFFIXES and path.is_file():
                self._check_file(path)
        return self.findings

    def _report(self, path, line, rule, message):
        self.findings.append(findings.Finding(path, line, rule, message))

    def _check_table(self):
        name = "cmake/rooms.cmake"
        for room in parse_rooms((self.root / name).read_text(encoding="utf-8")):
            if room.name in self.rooms:
                self._report(name, room.line, "table", f"room {room.name} is listed twice")
            for other in room.may_include:
                if other not in self.rooms:
                    self._report(name, room.line, "table",
                                 f"{room.name} may include {other}, which is not listed before it")
                elif self.rooms[other].level >= room.level:
                    self._report(name, room.line, "levels",
                                 f"{room.name} (level {room.level}) may include {other} (level "
                                 f"{self.rooms[other].level}): includes point to lower levels")
            self.rooms[room.name] = room
        folders = {path.name for path in self.source.iterdir() if path.is_dir()}
        for folder in sorted(folders - set(self.rooms)):
            self._report(f"src/{folder}", 1, "table", f"the folder is no room of {name}")
        for room in self.rooms.values():
            if room.name not in folders:
                self._report(name, room.line, "table", f"src/{room.name} does not exist")

    def _check_readme(self):
        path = self.source / "README.md"
        text = path.read_text(encoding="utf-8") if path.is_file() else ""
        named = README_ROOM.findall(text)
        if named != list(self.rooms):
            self._report("src/README.md", 1, "readme",
                         f"its headings name the rooms {' '.join(named) or '(none)'}; "
                         f"cmake/rooms.cmake has {' '.join(self.rooms)}, in this order")

    def _check_file(self, path):
        place = path.relative_to(self.source).as_posix()
        if "/" not in place:
            self._report(f"src/{place}", 1, "table", "a source file outside every room")
            return
        source = cpp_source.parse(path.read_text(encoding="utf-8"))
        if path.suffix == ".h":
            self._check_header_start(place, source)
        for number, line in enumerate(source.code, 1):
            include = INCLUDE.match(line)
            if include:
                self._check_include(place, number, include)
            elif CONDITION.match(line):
                self._check_condition(place, number, source.code)
            else:
                self._check_words(place, number, line)

    def _check_header_start(self, place, source):
        if not source.lines[0].startswith("//"):
            self._report(f"src/{place}", 1, "header",
                         "a header opens with a comment: what it is, invariants, thread safety")
        if not any(line.strip() == "#pragma once" for line in source.code) and \
                not place.endswith("-inl.h"):
            self._report(f"src/{place}", 1, "header", "#pragma once is missing")

    def _check_include(self, place, number, include):
        system, own = include.groups()
        if own is not None and not self._is_library(own):
            self._check_own_include(place, number, own)
        elif own is None and (self.source / system).is_file():
            self._report(f"src/{place}", number, "include", f"write \"{system}\" in quotes")
        else:
            self._check_library_include(place, number, system or own)

    def _is_library(self, header):
        """Whether a header in quotes is a library's: no file of ours, and listed in the rules."""
        return not (self.source / header).is_file() and \
            any(fnmatchcase(header, pattern) for pattern, _, _ in room_rules.HEADERS)

    def _check_own_include(self, place, number, header):
        where = f"src/{place}"
        room, other = place.split("/")[0], header.split("/")[0]
        if not (self.source / header).is_file() or ".." in header.split("/"):
            self._report(where, number, "include",
                         f"\"{header}\" is no file under src/: includes are written from src/")
            return
        if room == other or room not in self.rooms:
            return
        if other not in self.rooms[room].may_include:
            allowed = ", ".join(self.rooms[room].may_include) or "no other room"
            self._report(where, number, "room",
                         f"{room} may not include \"{header}\"; it may include {allowed}")
        elif "internal" in header.split("/")[1:-1]:
            self._report(where, number, "internal", f"\"{header}\" is internal to {other}")
        headers = room_rules.ALLOWED_HEADERS.get((room, other))
        if headers is not None and header not in headers:
            self._report(where, number, "room",
                         f"of {other}, {room} may include {', '.join(sorted(headers))} only; "
                         f"found \"{header}\"")

    def _check_library_include(self, place, number, header):
        for pattern, places, rule in room_rules.HEADERS:
            if fnmatchcase(header, pattern):
                if not is_allowed(place, places):
                    self._report(f"src/{place}", number, "library", f"<{header}>: {rule}")
                return
        if "/" in header or "." in header:
            self._report(f"src/{place}", number, "library",
                         f"<{header}> is not known: libraries are listed in tools/room_rules.py")

    def _check_condition(self, place, number, code):
        condition = CONDITION.match(code[number - 1]).group(1)
        if is_allowed(place, room_rules.CONDITION_PLACES):
            return
        names = re.findall(r"[A-Za-z_]\w*", condition.replace("defined", ""))
        if is_allowed(place, room_rules.OWN_CONDITION_PLACES) and names and \
                all(name.startswith("LOCKET_") for name in names):
            return
        following = next((line for line in code[number:] if line.strip()), "")
        is_guard = len(names) == 1 and re.match(rf"\s*#\s*define\s+{names[0]}\s*$", following)
        if not (is_guard and re.match(r"\s*#\s*ifndef\b", code[number - 1])):
            self._report(f"src/{place}", number, "condition",
                         "preprocessor conditions stand in kernels only; an absent device or "
                         "library has its own folder")

    def _check_words(self, place, number, line):
        for pattern, places, rule in room_rules.WORDS:
            found = re.search(pattern, line)
            if found and not is_allowed(place, places):
                self._report(f"src/{place}", number, "word", f"{found.group(0).strip()}: {rule}")


def check(root):
    """All findings of the tree under `root`."""
    return Checker(root).run()


if __name__ == "__main__":
    findings.main("check_rooms", __doc__, check)
