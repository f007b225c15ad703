"""The gate fires on ratios that dropped beyond their spread, and on nothing else."""

import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import check_bench


def row(key, median, better="higher", spread=0.02, kind="ratio"):
    return {"group": "H2", "key": key, "what": key, "kind": kind, "better": better, "floor": 0.8,
            "goal": 0.9, "median": median, "best": median, "spread": spread, "detail": ""}


def result(*rows, machine="cpu-1-2t", kernels="avx512", quick=True):
    return {"machine": machine, "kernels": kernels, "quick": quick, "runs": 3, "rows": list(rows)}


class CheckBenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def record(self, *results):
        with contextlib.redirect_stdout(io.StringIO()):
            check_bench.record(list(results), self.folder)

    def judge(self, found, measure_again=None):
        """The exit code and what was printed."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = check_bench.judge(found, self.folder, measure_again)
        return code, printed.getvalue()

    def test_passes_what_is_as_good_as_before(self):
        self.record(result(row("matvec", 0.9), row("verify", 1.4, "lower")))
        code, text = self.judge(result(row("matvec", 0.9), row("verify", 1.4, "lower")))
        self.assertEqual(code, 0)
        self.assertIn("0 of 2", text)

    def test_passes_what_is_better(self):
        self.record(result(row("matvec", 0.7), row("verify", 1.6, "lower")))
        code, _ = self.judge(result(row("matvec", 0.99), row("verify", 1.1, "lower")))
        self.assertEqual(code, 0)

    def test_fails_a_ratio_that_dropped_beyond_its_spread(self):
        self.record(result(row("matvec", 0.9, spread=0.1)))
        self.assertEqual(self.judge(result(row("matvec", 0.81)))[0], 0)
        code, text = self.judge(result(row("matvec", 0.79)))
        self.assertEqual(code, 1)
        self.assertIn("matvec", text)
        self.assertIn("DROPPED: 0.790 is worse than 0.900", text)

    def test_fails_a_ratio_of_which_less_is_better_when_it_rises(self):
        self.record(result(row("verify", 1.4, "lower", spread=0.1)))
        self.assertEqual(self.judge(result(row("verify", 1.49, "lower")))[0], 0)
        self.assertEqual(self.judge(result(row("verify", 1.51, "lower")))[0], 1)

    def test_allows_five_percent_where_the_spread_is_less(self):
        self.record(result(row("matvec", 1.0, spread=0.0)))
        self.assertEqual(self.judge(result(row("matvec", 0.96)))[0], 0)
        self.assertEqual(self.judge(result(row("matvec", 0.94)))[0], 1)

    def test_fails_other_bits_without_any_spread(self):
        self.record(result(row("same_bits", 1, spread=0)))
        self.assertEqual(self.judge(result(row("same_bits", 0, spread=0)))[0], 1)

    def test_the_spread_is_that_between_runs_if_that_is_more(self):
        self.record(*(result(row("matvec", median, spread=0.02)) for median in (0.7, 0.9, 0.8)))
        kept = json.loads((self.folder / "cpu-1-2t.json").read_text())["ratios"]["matvec"]
        self.assertEqual(kept["median"], 0.8)
        self.assertEqual(kept["spread"], 0.2)

    def test_figures_are_never_compared(self):
        self.record(result(row("tokens", 5000, kind="figure"), row("matvec", 0.9)))
        code, text = self.judge(result(row("tokens", 1, kind="figure"), row("matvec", 0.9)))
        self.assertEqual(code, 0)
        self.assertNotIn("tokens", text)

    def test_fails_a_ratio_that_is_gone_and_shows_a_new_one(self):
        self.record(result(row("matvec", 0.9)))
        code, text = self.judge(result(row("other", 0.9)))
        self.assertEqual(code, 1)
        self.assertIn("is not measured any more", text)
        self.assertIn("0.900, not in the baseline", text)

    def test_passes_a_machine_without_a_baseline_and_says_so(self):
        self.record(result(row("matvec", 0.9)))
        code, text = self.judge(result(row("matvec", 0.1), machine="cpu-2-2t"))
        self.assertEqual(code, 0)
        self.assertIn("no baseline for cpu-2-2t", text)

    def test_fails_when_other_kernels_are_used_than_before(self):
        self.record(result(row("matvec", 0.9)))
        code, text = self.judge(result(row("matvec", 0.9), kernels="avx2"))
        self.assertEqual(code, 1)
        self.assertIn("kernels is avx2, the baseline has avx512", text)

    def test_measures_once_more_and_takes_the_better_of_each(self):
        self.record(result(row("matvec", 0.9), row("verify", 1.4, "lower")))
        again = lambda: result(row("matvec", 0.9), row("verify", 2.0, "lower"))
        self.assertEqual(self.judge(result(row("matvec", 0.5), row("verify", 1.4, "lower")),
                                    again)[0], 0)
        still = lambda: result(row("matvec", 0.6), row("verify", 1.4, "lower"))
        self.assertEqual(self.judge(result(row("matvec", 0.5), row("verify", 1.4, "lower")),
                                    still)[0], 1)

    def test_does_not_measure_again_without_need(self):
        self.record(result(row("matvec", 0.9)))

        def never():
            self.fail("it was measured again")
        self.assertEqual(self.judge(result(row("matvec", 0.9)), never)[0], 0)

    def test_refuses_to_mix_machines_in_a_baseline(self):
        with self.assertRaisesRegex(ValueError, "differ in machine"):
            check_bench.make_baseline([result(row("matvec", 0.9)),
                                       result(row("matvec", 0.9), machine="cpu-2-2t")])


if __name__ == "__main__":
    unittest.main()
