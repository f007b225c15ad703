#!/usr/bin/env python3
"""The regression gate of `locket bench`: compares ratios with those recorded for this kind of
machine, in bench/baseline/MACHINE.json.

    check_bench.py --run build/release/locket            run the quick bench and compare
    check_bench.py RESULT.json                           compare a result that is there
    check_bench.py --record --run build/release/locket   make or replace the baseline

Only ratios are compared, never figures: both sides of a ratio were measured within one run. A
ratio has dropped if it is worse than the baseline's median by more than the baseline's spread (at
least 5 %). Machines are shared: what dropped is measured once more, and the better of the two
counts. A machine without a baseline passes, and says so.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASELINES = ROOT / "bench" / "baseline"
RECORDED_RUNS = 5
LEAST_SPREAD = 0.05  # of the median

PASSED, FAILED, WRONG_USE = 0, 1, 2


def ratios(result):
    """key -> row, without the rows that are figures."""
    return {row["key"]: row for row in result["rows"] if row["kind"] == "ratio"}


def is_better(row, a, b):
    return a < b if row["better"] == "lower" else a > b


def better_of(first, second):
    """The result whose every ratio is the better one of the two; what one lacks is the other's."""
    rows = ratios(first)
    for key, row in ratios(second).items():
        if key not in rows or is_better(row, row["median"], rows[key]["median"]):
            rows[key] = row
    return dict(first, rows=list(rows.values()))


def make_baseline(results):
    """What is kept of several results of one machine; ValueError if they do not fit each other."""
    first = results[0]
    for name in ("machine", "kernels", "quick"):
        found = {result[name] for result in results}
        if len(found) > 1:
            raise ValueError(f"results differ in {name}: {', '.join(sorted(map(str, found)))}")
    kept = {}
    for key, row in ratios(first).items():
        rows = [ratios(result)[key] for result in results if key in ratios(result)]
        medians = [each["median"] for each in rows]
        between = max(medians) - min(medians)
        within = statistics.median(each["spread"] for each in rows)
        kept[key] = {"better": row["better"], "what": row["what"],
                     "median": round(statistics.median(medians), 4),
                     "spread": round(max(between, within), 4)}
    return {"machine": first["machine"], "kernels": first["kernels"], "quick": first["quick"],
            "runs": len(results), "ratios": kept}


def drops(baseline, result):
    """key -> why it fails."""
    found = ratios(result)
    failed = {}
    for key, kept in baseline["ratios"].items():
        if key not in found:
            failed[key] = "is not measured any more"
            continue
        median = found[key]["median"]
        allowed = max(kept["spread"], LEAST_SPREAD * abs(kept["median"]))
        worse = median - kept["median"] if kept["better"] == "lower" else kept["median"] - median
        if worse > allowed:
            failed[key] = (f"{median:.3f} is worse than {kept['median']:.3f} by more than "
                           f"{allowed:.3f}")
    return failed


def mismatch(baseline, result):
    """Why the two cannot be compared; None if they can."""
    for name in ("quick", "kernels"):
        if baseline[name] != result[name]:
            return f"{name} is {result[name]}, the baseline has {baseline[name]}"
    return None


def judge(result, folder, measure_again=None):
    """Prints what was found and returns the exit code."""
    path = folder / f"{result['machine']}.json"
    if not path.exists():
        print(f"bench: no baseline for {result['machine']} in {folder}; nothing was compared")
        return PASSED
    baseline = json.loads(path.read_text(encoding="utf-8"))
    why = mismatch(baseline, result)
    if why is not None:
        print(f"bench: {why}")
        return FAILED
    failed = drops(baseline, result)
    if failed and measure_again is not None:
        print(f"bench: {len(failed)} ratio(s) dropped; measured once more")
        result = better_of(result, measure_again())
        failed = drops(baseline, result)
    found = ratios(result)
    for key, kept in baseline["ratios"].items():
        state = f"DROPPED: {failed[key]}" if key in failed else (
            f"{found[key]['median']:.3f}, baseline {kept['median']:.3f} +- {kept['spread']:.3f}")
        print(f"{key:32} {state}")
    for key in sorted(set(found) - set(baseline["ratios"])):
        print(f"{key:32} {found[key]['median']:.3f}, not in the baseline")
    print(f"bench: {len(failed)} of {len(baseline['ratios'])} ratio(s) dropped")
    return FAILED if failed else PASSED


def run_bench(program):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.json"
        subprocess.run([str(program), "bench", "--quick", "--json", str(path)], check=True)
        return json.loads(path.read_text(encoding="utf-8"))


def record(results, folder):
    baseline = make_baseline(results)
    path = folder / f"{baseline['machine']}.json"
    folder.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(baseline, indent=1) + "\n", encoding="utf-8")
    print(f"bench: {path}: {len(baseline['ratios'])} ratios of {len(results)} runs")
    return PASSED


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", nargs="*", type=Path, help="JSON of locket bench --json")
    parser.add_argument("--run", type=Path, metavar="PROGRAM", help="run its quick bench")
    parser.add_argument("--record", action="store_true", help="make the baseline of this machine")
    parser.add_argument("--baselines", type=Path, default=BASELINES, metavar="FOLDER")
    options = parser.parse_args()
    if bool(options.results) == bool(options.run):
        parser.error("give either results or --run")
    results = [json.loads(path.read_text(encoding="utf-8")) for path in options.results]
    if options.record:
        if options.run:
            results = [run_bench(options.run) for _ in range(RECORDED_RUNS)]
        return record(results, options.baselines)
    if options.run:
        return judge(run_bench(options.run), options.baselines, lambda: run_bench(options.run))
    merged = results[0]
    for other in results[1:]:
        merged = better_of(merged, other)
    return judge(merged, options.baselines)


if __name__ == "__main__":
    sys.exit(main())
