"""What is known to be clean is not checked again, until anything that matters changes."""

import importlib.util
import tempfile
import unittest
from pathlib import Path
from unittest import mock

TOOL = Path(__file__).resolve().parents[2] / "tools/run_tidy.py"
# Stands for clang-tidy: notes its calls, and finds every line that says BAD.
TIDY = """#!/bin/sh
if [ "$1" = --version ]; then echo version {version}; exit 0; fi
for file; do :; done
echo "$file" >> {calls}
if grep -q BAD "$file"; then echo "$file:1:1: error: bad"; exit 1; fi
"""


class RunTidyTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        self.calls = self.folder / "calls"
        self.notes = self.folder / "notes"
        self.notes.mkdir()
        self.make_tree("one")

    def make_tree(self, name):
        self.root = self.folder / name
        (self.root / "src").mkdir(parents=True)
        (self.root / "tools/tidy").mkdir(parents=True)
        (self.root / ".clang-tidy").write_text("Checks: all\n")
        (self.root / "src/a.h").write_text("int a();\n")
        (self.root / "src/a.cc").write_text('#include "a.h"\nint a() { return 1; }\n')
        self.write_tidy(1)

    def write_tidy(self, version):
        self.tidy = self.folder / "tidy"
        self.tidy.write_text(TIDY.format(version=version, calls=self.calls))
        self.tidy.chmod(0o755)

    def check(self, *flags):
        """(exit code, whether clang-tidy was not needed)."""
        spec = importlib.util.spec_from_file_location("run_tidy", TOOL)
        tool = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(tool)
        file = self.root / "src/a.cc"
        command = ["g++", f"-I{self.root}/src", *flags, "-o", "a.o", "-c", str(file)]
        before = self.calls.read_text() if self.calls.exists() else ""
        with mock.patch.multiple(tool, ROOT=self.root, NOTES=self.notes):
            code, output, known = tool.check_file(str(self.tidy), self.folder, file,
                                                  str(self.folder), command)
        after = self.calls.read_text() if self.calls.exists() else ""
        self.assertEqual(known, before == after)
        self.assertEqual(bool(output), code != 0)
        return code, known

    def test_a_clean_file_is_checked_once(self):
        self.assertEqual(self.check(), (0, False))
        self.assertEqual(self.check(), (0, True))

    def test_also_in_another_folder(self):
        self.check()
        self.make_tree("two")
        self.assertEqual(self.check(), (0, True))

    def test_a_file_with_findings_is_checked_again(self):
        (self.root / "src/a.cc").write_text("int BAD;\n")
        self.assertEqual(self.check(), (1, False))
        self.assertEqual(self.check(), (1, False))

    def test_whatever_changes_it_is_checked_again(self):
        self.check()
        changes = [lambda: (self.root / "src/a.cc").write_text("int b();\n"),
                   lambda: (self.root / "src/a.cc").write_text('#include "a.h"\n'),
                   lambda: (self.root / "src/a.h").write_text("int c();\n"),
                   lambda: (self.root / ".clang-tidy").write_text("Checks: others\n"),
                   lambda: (self.root / "tools/tidy/x.h").write_text("\n"),
                   lambda: self.write_tidy(2)]
        for change in changes:
            change()
            self.assertEqual(self.check(), (0, False))
            self.assertEqual(self.check(), (0, True))
        self.assertEqual(self.check("-DX=1"), (0, False))

    def test_a_file_that_does_not_compile_is_always_checked(self):
        (self.root / "src/a.cc").write_text('#include "missing.h"\n')
        self.assertEqual(self.check(), (0, False))
        self.assertEqual(self.check(), (0, False))


if __name__ == "__main__":
    unittest.main()
