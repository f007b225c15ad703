#!/usr/bin/env python3
"""Runs clang-tidy over the files of src/ in a compile_commands.json, one process per core.

Usage: run_tidy.py [--build FOLDER] [--jobs N] [FILE...]
Checks every .cc file of src/ (or only the FILEs) with the repository's .clang-tidy; prints each
finding once, also if it stands in a header that many files include. Exit code 1 if there is one.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Flags that only g++ knows; clang would refuse them under -Werror.
EXTRA = ["--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-unused-command-line-argument",
         "--extra-arg=-include", f"--extra-arg={ROOT}/tools/tidy/source_location.h"]
FINDING = re.compile(r"^\S+:\d+:\d+: (?:error|warning): ")


def source_files(build, chosen):
    """The .cc files of src/ that the build compiles, or those of `chosen` among them."""
    commands = json.loads((build / "compile_commands.json").read_text(encoding="utf-8"))
    files = {Path(command["directory"], command["file"]).resolve() for command in commands}
    files = sorted(path for path in files if (ROOT / "src") in path.parents)
    wanted = {Path(name).resolve() for name in chosen}
    return [path for path in files if path in wanted] if chosen else files


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
    seen, failed = set(), 0
    with ThreadPoolExecutor(options.jobs) as pool:
        for code, output in pool.map(lambda path: run_tidy(tidy, options.build, path), files):
            failed += code != 0
            for block in split_findings(output):
                if block.strip() and block not in seen:
                    seen.add(block)
                    print(block, flush=True)
    print(f"run_tidy: {failed} of {len(files)} files have findings")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
