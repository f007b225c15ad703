#!/usr/bin/env python3
"""Runs clang-tidy over the files of src/ in a compile_commands.json, one process per core.

Usage: run_tidy.py [--build FOLDER] [--jobs N] [--alone] [FILE...]
Checks every .cc file of src/ (or only the FILEs) with the repository's .clang-tidy; prints each
finding once, also if it stands in a header that many files include. Exit code 1 if there is one.

Most of clang-tidy's time goes to the standard library's headers, anew for every file. So files of
one folder are first checked together, as one source that includes them. Where that has findings, or
does not compile because two files use one name for different things, each half is checked, down to
single files; only what is found in a file alone is printed. Some checks look at the main file only:
they run over each file alone, without the others. --alone checks single files from the start.
"""

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Flags that only g++ knows; clang would refuse them under -Werror.
EXTRA = ["-Wno-unknown-warning-option", "-Wno-unused-command-line-argument",
         "-include", f"{ROOT}/tools/tidy/source_location.h"]
TOGETHER = 8  # files at most; in twice as many two names meet more often
# These see only the main file, which in a group is the list of includes.
MAIN_FILE_ONLY = "misc-unused-using-decls,misc-unused-alias-decls"
# A group includes sources on purpose, and a local name may be another file's.
NOT_OF_GROUPS = "bugprone-suspicious-include"
FLAGS_OF_GROUPS = ["-Wno-shadow"]
# Sources that include themselves, once for every instruction set.
INCLUDES_ITSELF = re.compile(r"foreach_target\.h|HWY_TARGET_INCLUDE")
DEFINITION = re.compile(r"^(?:(?:struct|class|enum class|enum) (\w+)|using (\w+) =|"
                        r"[A-Za-z_][\w:<>,&*\s\[\]]*?[\s&*>](\w+)\s*[(={;])", re.M)
FINDING = re.compile(r"^\S+:\d+:\d+: (?:error|warning): ")


def source_files(build, chosen):
    """{.cc file of src/ that the build compiles, or of `chosen` among them: its flags}."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    files = {Path(command["directory"], command["file"]).resolve():
             flags_of(command) for command in commands}
    wanted = {Path(name).resolve() for name in chosen}
    return {path: files[path] for path in sorted(files)
            if (ROOT / "src") in path.parents and (not chosen or path in wanted)}


def flags_of(command):
    """What decides how a file is read: the command without launcher, compiler, input and output."""
    words, flags = shlex.split(command["command"]), []
    while words and not words[0].startswith("-"):
        words.pop(0)
    while words:
        word = words.pop(0)
        if word in ("-o", "-c", "-MF", "-MT"):
            words.pop(0)
        elif word.startswith("-I"):
            flags.append("-I" + str(Path(command["directory"], word[2:])))
        elif not word.startswith("-M"):
            flags.append(word)
    return flags


def names_of(text):
    """What a file defines at its top level, and a few names more: those it should share with nobody
    in its group."""
    return {name for match in DEFINITION.finditer(text) for name in match.groups() if name}


def groups_of(files):
    """Lists of files of one folder with equal flags that define different names; those that include
    themselves are alone."""
    groups = []
    for _, part in groupby(files, key=lambda path: (path.parent, files[path])):
        alone, together = [], []  # together: [files, their names]
        for path in part:
            text = path.read_text(encoding="utf-8")
            names = names_of(text)
            fitting = [group for group in together
                       if len(group[0]) < TOGETHER and not names & group[1]]
            if INCLUDES_ITSELF.search(text):
                alone.append([path])
            elif fitting:
                fitting[0][0].append(path)
                fitting[0][1].update(names)
            else:
                together.append([[path], names])
        groups += [group for group, _ in together] + alone
    return groups


def run_tidy(tidy, path, flags, checks):
    """(exit code, output) of one source."""
    # Named, because clang-tidy looks for it beside the source, and a group's may lie elsewhere.
    options = [f"--config-file={ROOT}/.clang-tidy"] + ([f"--checks={checks}"] if checks else [])
    done = subprocess.run([tidy, "--quiet", *options, str(path), "--", *flags, *EXTRA], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    is_noise = re.compile(r"^\d+ (?:warning|error).* generated|^Suppressed |^Use -header")
    errors = "".join(line for line in done.stderr.splitlines(True) if not is_noise.match(line))
    return done.returncode, done.stdout + (errors if done.returncode else "")


def together_is_clean(tidy, paths, flags, scratch):
    text = "".join(f'#include "{path}"\n' for path in paths)
    source = scratch / (hashlib.sha256(text.encode()).hexdigest()[:16] + ".cc")
    source.write_text(text, encoding="utf-8")
    excluded = ",".join("-" + check for check in f"{MAIN_FILE_ONLY},{NOT_OF_GROUPS}".split(","))
    return run_tidy(tidy, source, flags + FLAGS_OF_GROUPS, excluded)[0] == 0


def check_group(tidy, paths, flags, scratch):
    """[(exit code, output)] of the files that were checked alone."""
    if len(paths) == 1:
        return [run_tidy(tidy, paths[0], flags, "")]
    if together_is_clean(tidy, paths, flags, scratch):
        # An alias or a using declaration that nobody uses needs one to be there.
        written = [path for path in paths if re.search(r"^\s*(using|namespace \w+ =)",
                                                       path.read_text(encoding="utf-8"), re.M)]
        return [run_tidy(tidy, path, flags, f"-*,{MAIN_FILE_ONLY}") for path in written]
    half = len(paths) // 2
    return (check_group(tidy, paths[:half], flags, scratch) +
            check_group(tidy, paths[half:], flags, scratch))


def split_findings(output):
    """The output as blocks, each starting at a finding."""
    blocks = []
    for line in output.splitlines():
        if FINDING.match(line) or not blocks:
            blocks.append(line)
        else:
            blocks[-1] += "\n" + line
    return blocks


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=Path, default=ROOT / "build/release",
                        help="folder with compile_commands.json (default: build/release)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at once")
    parser.add_argument("--alone", action="store_true", help="check every file by itself")
    parser.add_argument("files", nargs="*", metavar="FILE", help="only these files of src/")
    options = parser.parse_args()
    tidy = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if tidy is None or not (options.build / "compile_commands.json").is_file():
        sys.exit(f"run_tidy: needs clang-tidy and {options.build}/compile_commands.json")
    files = source_files(options.build, options.files)
    if not files:
        sys.exit(f"run_tidy: no file of src/ in {options.build}/compile_commands.json")
    scratch = options.build / "tidy"
    scratch.mkdir(exist_ok=True)
    groups = [[path] for path in files] if options.alone else groups_of(files)
    seen, failed = set(), 0
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(check_group, tidy, group, files[group[0]], scratch) for group in groups]
        for job in jobs:
            for code, output in job.result():
                failed += code != 0
                for block in split_findings(output):
                    if block.strip() and block not in seen:
                        seen.add(block)
                        print(block, flush=True)
    print(f"run_tidy: {failed} of {len(files)} files have findings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
