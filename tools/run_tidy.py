#!/usr/bin/env python3
"""Runs clang-tidy over the files of src/ in a compile_commands.json, one process per core.

Usage: run_tidy.py [--build FOLDER] [--jobs N] [FILE...]
Checks every .cc file of src/ (or only the FILEs) with the repository's .clang-tidy; prints each
finding once, also if it stands in a header that many files include. Exit code 1 if there is one.

A file without findings is not checked again while nothing changes: neither it, nor a header that it
includes, its compiler's command, the configuration, or clang-tidy. What is known to be clean is
noted in ~/.cache/locket-tidy (or $XDG_CACHE_HOME), a month long.
"""

import argparse
import functools
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Flags that only g++ knows; clang would refuse them under -Werror.
EXTRA = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-unused-command-line-argument",
         "--extra-arg=-include", f"--extra-arg={ROOT}/tools/tidy/source_location.h"]
NOTES = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "locket-tidy"
KEPT_SECONDS = 30 * 24 * 3600
FINDING = re.compile(r"^\S+:\d+:\d+: (?:error|warning): ")


def source_files(build, chosen):
    """{.cc file of src/ that the build compiles, or of `chosen` among them: (folder, command)}."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    files = {Path(command["directory"], command["file"]).resolve():
             (command["directory"], shlex.split(command["command"])) for command in commands}
    wanted = {Path(name).resolve() for name in chosen}
    return {path: files[path] for path in sorted(files)
            if (ROOT / "src") in path.parents and (not chosen or path in wanted)}


@functools.lru_cache(maxsize=None)
def digest_of_file(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


@functools.lru_cache(maxsize=None)
def digest_of_checks(tidy):
    """Of what is the same for all files."""
    version = subprocess.run([tidy, "--version"], capture_output=True, text=True, check=True).stdout
    parts = [version, digest_of_file(ROOT / ".clang-tidy"), digest_of_file(__file__)]
    parts += [digest_of_file(path) for path in sorted((ROOT / "tools/tidy").iterdir())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def digest_of_inputs(tidy, folder, command):
    """Of all that decides what clang-tidy says of a file, in whichever folder the tree lies; None
    if the compiler cannot say what the file includes."""
    if "-o" in command:
        at = command.index("-o")
        command = command[:at] + command[at + 2:]
    done = subprocess.run([*command, "-M", "-MT", "x"], cwd=folder, capture_output=True, text=True,
                          check=False)
    if done.returncode != 0:
        return None
    names = done.stdout.replace("\\\n", " ").split()[1:]
    parts = [digest_of_checks(tidy), " ".join(command).replace(str(ROOT), "")]
    for path in sorted({str(Path(folder, name).resolve()) for name in names}):
        parts += [path.replace(str(ROOT), ""), digest_of_file(path)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def forget_old_notes():
    for note in NOTES.iterdir():
        if note.stat().st_mtime < time.time() - KEPT_SECONDS:
            note.unlink(missing_ok=True)


def check_file(tidy, build, path, folder, command):
    """(exit code, output, whether it was known to be clean) of one file."""
    digest = digest_of_inputs(tidy, folder, command)
    note = NOTES / digest if digest else None
    if note is not None and note.exists():
        note.touch()
        return 0, "", True
    code, output = run_tidy(tidy, build, path)
    if note is not None and code == 0 and not output.strip():
        note.touch()
    return code, output, False


def run_tidy(tidy, build, path):
    """(exit code, output) of one file."""
    done = subprocess.run([tidy, "--quiet", f"-p={build}", *EXTRA, str(path)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    is_noise = re.compile(r"^\d+ (?:warning|error).* generated|^Suppressed |^Use -header")
    errors = "".join(line for line in done.stderr.splitlines(True) if not is_noise.match(line))
    return done.returncode, done.stdout + (errors if done.returncode else "")


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
    parser.add_argument("files", nargs="*", metavar="FILE", help="only these files of src/")
    options = parser.parse_args()
    tidy = shutil.which("clang-tidy-14") or shutil.which("clang-tidy")
    if tidy is None or not (options.build / "compile_commands.json").is_file():
        sys.exit(f"run_tidy: needs clang-tidy and {options.build}/compile_commands.json")
    files = source_files(options.build, options.files)
    if not files:
        sys.exit(f"run_tidy: no file of src/ in {options.build}/compile_commands.json")
    NOTES.mkdir(parents=True, exist_ok=True)
    forget_old_notes()
    seen, failed, known = set(), 0, 0
    with ThreadPoolExecutor(options.jobs) as pool:
        jobs = [pool.submit(check_file, tidy, options.build, path, *command)
                for path, command in files.items()]
        for job in jobs:
            code, output, was_known = job.result()
            failed += code != 0
            known += was_known
            for block in split_findings(output):
                if block.strip() and block not in seen:
                    seen.add(block)
                    print(block, flush=True)
    print(f"run_tidy: {failed} of {len(files)} files have findings; {known} were known to be clean")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
