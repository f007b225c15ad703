"""Files are checked together; what is printed is what is found in a file alone."""

import importlib.util
import shlex
import tempfile
import unittest
from pathlib import Path
from unittest import mock

TOOL = Path(__file__).resolve().parents[2] / "tools/run_tidy.py"
# Stands for clang-tidy: notes its calls, finds BAD in what its source includes, ALIAS in the main
# file only; two files that say SAME do not compile together.
TIDY = """#!/bin/sh
echo "$@" >> {calls}
for word; do case "$word" in *.cc) source="$word";; esac; done
files=$(sed -n 's/^#include "\\(.*\\.cc\\)"$/\\1/p' "$source")
all=${{files:-$source}}
case "$*" in
  *checks=-\\**) pattern=ALIAS; all=$source;;
  *) pattern=BAD;;
esac
[ "$(cat $all | grep -c SAME)" -lt 2 ] || exit 1
if grep -q "$pattern" $all; then echo "$source:1:1: error: bad"; exit 1; fi
"""


class RunTidyTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.root = Path(scratch.name)
        self.calls = self.root / "calls"
        self.tidy = self.root / "tidy"
        self.tidy.write_text(TIDY.format(calls=self.calls))
        self.tidy.chmod(0o755)
        spec = importlib.util.spec_from_file_location("run_tidy", TOOL)
        self.tool = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(self.tool)
        patched = mock.patch.object(self.tool, "ROOT", self.root)
        patched.start()
        self.addCleanup(patched.stop)

    def write(self, **texts):
        folder = self.root / "src/room"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            (folder / f"{name}.cc").write_text(text)
        return [folder / f"{name}.cc" for name in texts]

    def groups(self, files):
        return [[path.stem for path in group]
                for group in self.tool.groups_of({path: ["-O2"] for path in files})]

    def check(self, files):
        """(names of the files with findings, number of clang-tidy's calls)."""
        results = self.tool.check_group(str(self.tidy), files, ["-O2"], self.root)
        found = {Path(output.split(":")[0]).stem for code, output in results if code}
        return found, len(self.calls.read_text().splitlines())

    def test_files_of_one_name_are_apart(self):
        files = self.write(a="int one() {\n", b="int two() {\n", c="constexpr int one = 1;\n",
                           d="struct two {\n", e="void A::one() {\n")
        self.assertEqual(self.groups(files), [["a", "b", "e"], ["c", "d"]])

    def test_a_shared_keyword_or_namespace_is_no_name(self):
        files = self.write(a="enum class One {\n", b="enum class Two {\n", c="using x::y;\n",
                           d="using x::z;\n", e="enum One {\n", f="using Two = int;\n")
        self.assertEqual(self.groups(files), [["a", "b", "c", "d"], ["e", "f"]])

    def test_every_call_names_the_configuration(self):
        self.check(self.write(a="using x::y;\n", b="BAD\n"))
        for call in self.calls.read_text().splitlines():
            self.assertIn(f"--config-file={self.root}/.clang-tidy", call)

    def test_groups_have_one_folder_equal_flags_and_a_size(self):
        files = self.write(**{f"f{i}": "" for i in range(9)})
        self.assertEqual([len(group) for group in self.groups(files)], [8, 1])
        flags = {path: ["-O2"] if path.stem < "f5" else ["-O3"] for path in files}
        self.assertEqual([len(group) for group in self.tool.groups_of(flags)], [5, 4])

    def test_a_file_that_includes_itself_is_alone(self):
        files = self.write(a="", b="#include <hwy/foreach_target.h>\n", c="")
        self.assertEqual(self.groups(files), [["a", "c"], ["b"]])

    def test_clean_files_need_one_call(self):
        self.assertEqual(self.check(self.write(a="", b="", c="", d="")), (set(), 1))

    def test_a_finding_is_traced_to_its_file(self):
        self.assertEqual(self.check(self.write(a="", b="", c="BAD\n", d=""))[0], {"c"})

    def test_files_that_do_not_compile_together_are_checked_apart(self):
        files = self.write(a="SAME\n", b="SAME\n", c="", d="BAD\n")
        self.assertEqual(self.check(files)[0], {"d"})

    def test_what_only_the_main_file_shows_is_found(self):
        files = self.write(a="using x::y;  // ALIAS\n", b="using x::z;\n", c="")
        self.assertEqual(self.check(files), ({"a"}, 3))

    def test_flags_are_those_that_decide_how_a_file_is_read(self):
        command = shlex.join(["/usr/bin/ccache", "/usr/bin/c++", "-DX=\"a b\"", "-I../../src",
                              "-MD", "-MT", "x.o", "-MF", "x.d", "-std=c++20", "-o", "x.o", "-c",
                              "x.cc"])
        flags = self.tool.flags_of({"directory": str(self.root), "command": command})
        self.assertEqual(flags, ['-DX="a b"', f"-I{self.root}/../../src", "-std=c++20"])


if __name__ == "__main__":
    unittest.main()
