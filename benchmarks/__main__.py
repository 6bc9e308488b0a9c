"""python -m benchmarks: the goals as a table of ratios, then how cost scales; JSON in output/benchmarks.json.

--quick     fewer rounds, smaller studies
--goals     only the table of goals
--scaling   only the scaling studies
--only      only goals whose work contains a word, such as pendulum, and nothing else
"""

import argparse
import json
import platform
import sys
import time
from pathlib import Path

from benchmarks import scaling
from benchmarks.table import GOALS, contest, first_results


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--goals", action="store_true")
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--json", type=Path, default=Path("output") / "benchmarks.json")
    asked = parser.parse_args()
    rounds = 2 if asked.quick else 5
    say = lambda words: print(f"  … {words}", file=sys.stderr, flush=True)
    found: dict = {"machine": platform.processor() or platform.machine(), "python": platform.python_version(), "date": time.strftime("%Y-%m-%d")}
    if not asked.scaling:
        rows = contest(tuple(goal for goal in GOALS if asked.only in goal.work), rounds, say)
        found["goals"], found["first"] = rows, first_results(rows)
        _print_goals(rows)
    if not asked.goals and not asked.only:
        studies = {
            "trajectories": lambda: scaling.trajectories(rounds, say),
            "steps": lambda: scaling.steps(rounds, say),
            "bodies": lambda: scaling.bodies(min(rounds, 3), say, 32 if asked.quick else 512),
            "cores": lambda: scaling.cores(rounds, say),
        }
        for study, measure in studies.items():
            found[study] = measure()
            _print_study(study, found[study])
    asked.json.parent.mkdir(parents=True, exist_ok=True)
    asked.json.write_text(json.dumps(found, indent=1))
    print(f"\nwritten to {asked.json}")


def _print_goals(rows: list[dict]) -> None:
    print(f"\n{'work':42} {'ours M/s':>9} {'peer M/s':>9}  {'peer':12} {'ratio':>7} {'goal':>6}")
    for row in rows:
        if row["missing"]:
            print(f"{row['work']:42} {'':9} {'':9}  {row['peer']:12} missing: {row['missing'][:60]}")
            continue
        speeds = [row[side]["speed"] / 1e6 for side in ("ours_found", "peer_found")]
        mark = "" if row["ratio"] >= row["wanted"] else "  short"
        print(f"{row['work']:42} {speeds[0]:9.2f} {speeds[1]:9.2f}  {row['peer']:12} {row['ratio']:7.2f} {row['wanted']:6.1f}{mark}")
    print("\nfirst result, compiling included")
    for name, seconds in first_results(rows):
        print(f"  {name:28} {seconds:6.1f} s")


def _print_study(name: str, rows: list[dict]) -> None:
    print(f"\n{name}", flush=True)
    for row in rows:
        shown = {k: v for k, v in row.items() if k in ("trajectories", "steps", "bodies", "cores", "name")}
        if "missing" in row:
            print(f"  {shown}  missing: {row['missing'][:80]}")
            continue
        pairs = f"  {row['pairs'] / 1e6:8.2f} M pairs/s" if "pairs" in row else ""
        print(f"  {shown!s:50} {row['speed'] / 1e6:9.4f} M/s  {row['memory'] / 1e6:7.0f} MB{pairs}")


if __name__ == "__main__":
    main()
