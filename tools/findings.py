"""What a checker reports, and the command line that all checkers share."""

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Finding:
    path: str
    line: int
    rule: str
    message: str

    def __str__(self):
        return f"{self.path}:{self.line}: [{self.rule}] {self.message}"


def main(name, description, check):
    """Runs check(root), prints a line per finding and a count; exits with 1 if there is any."""
    parser = argparse.ArgumentParser(description=description,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent,
                        help="the repository (default: the one this script is in)")
    findings = check(parser.parse_args().root)
    for finding in findings:
        print(finding)
    print(f"{name}: {len(findings)} finding(s)")
    sys.exit(1 if findings else 0)
