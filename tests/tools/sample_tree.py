"""A small repository in a temporary folder, for the tests of the checkers."""

import sys
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))


class SampleTreeTest(unittest.TestCase):
    """write() makes files under self.root, which is removed after each test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def places(self, found):
        """Findings as (path, line, rule), for comparison."""
        return [(finding.path, finding.line, finding.rule) for finding in found]
