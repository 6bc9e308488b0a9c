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
from benchmarks.table import GOALS, asked, contest, first_results, memory, speeds
from bismut.engines.native.target import processor
from bismut.executors.threads import cores


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--goals", action="store_true")
    parser.add_argument("--scaling", action="store_true")
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--json", type=Path, default=Path("output") / "benchmarks.json")
    words = parser.parse_args()
    rounds = 3 if words.quick else 8
    say = lambda words: print(f"  … {words}", file=sys.stderr, flush=True)
    found: dict = {"machine": f"{processor()}, {cores()} cores", "python": platform.python_version(), "date": time.strftime("%Y-%m-%d")}
    if not words.scaling:
        found["goals"] = contest(tuple(goal for goal in GOALS if words.only in goal.work), rounds, say)
        _print_goals(found["goals"])
        if not words.only or words.only in "first result":
            found["first"] = first_results(min(rounds, 3), say)
            _print_first(found["first"])
        if not words.only or words.only in "asked of a state":
            found["asked"] = asked(say)
            _print_rows("asked of a state, ms", found["asked"], "milliseconds", "≤", 1.0)
        if not words.only or words.only in "one trajectory":
            found["alone"] = speeds(rounds, say)
            _print_rows("one trajectory, M steps/s", found["alone"], "speed", "≥", 1.0)
        if not words.only or words.only in "memory":
            found["memory"] = memory(say)
            _print_rows("memory, GB", found["memory"], "bytes", "≤", 1e9)
    if not words.goals and not words.only:
        studies = {
            "trajectories": lambda: scaling.trajectories(3, say),
            "steps": lambda: scaling.steps(3, say),
            "bodies": lambda: scaling.bodies(3, say, 32 if words.quick else 512),
        }
        for study, measure in studies.items():
            found[study] = measure()
            _print_study(study, found[study])
    words.json.parent.mkdir(parents=True, exist_ok=True)
    words.json.write_text(json.dumps(found, indent=1))
    print(f"\nwritten to {words.json}")


def _print_goals(rows: list[dict]) -> None:
    """Speeds in millions of path-steps, or body-steps, a second; of observers, the time with over the time without. `per cpu` is the ratio for a
    second of processor time instead of one of the clock: where the two differ, others were using the machine, or a side lets cores wait."""
    print(f"\n{'work':46} {'ours M/s':>9} {'peer M/s':>9}  {'peer':16} {'ratio':>7} {'per cpu':>8}    goal")
    for row in rows:
        if row["missing"]:
            print(f"{row['work']:46} {'':9} {'':9}  {row['peer']:16} missing: {row['missing'][:60]}")
            continue
        speeds = [row[side]["speed"] / 1e6 for side in ("ours_found", "peer_found")]
        goal = f"{'≤' if row['at_most'] else '≥'} {row['wanted']:g}" + ("" if row["reached"] else "  short")
        print(f"{row['work']:46} {speeds[0]:9.3f} {speeds[1]:9.3f}  {row['peer']:16} {row['ratio']:7.2f} {row['effort']:8.2f}    {goal}", flush=True)


def _print_first(rows: list[dict]) -> None:
    print("\nfirst result in a new process, import and compiling included")
    for row in rows:
        print(f"  {row['work']:28} {row['seconds']:6.1f} s   ≤ {row['wanted']:g}{'' if row['reached'] else '  short'}")


def _print_rows(title: str, rows: list[dict], what: str, sign: str, unit: float) -> None:
    print(f"\n{title}")
    for row in rows:
        found = f"missing: {row['missing'][:60]}" if row["missing"] else f"{row[what] / unit:8.2f}"
        print(f"  {row['work']:28} {found}   {sign} {row['wanted'] / unit:g}{'' if row['reached'] else '  short'}")


def _print_study(name: str, rows: list[dict]) -> None:
    print(f"\n{name}", flush=True)
    for row in rows:
        if "missing" in row:
            print(f"  {row[name]:>9}  missing: {row['missing'][:80]}")
            continue
        pairs = f"  {row['pairs'] / 1e6:8.2f} M pairs/s" if "pairs" in row else ""
        print(f"  {row[name]:>9} {row['speed'] / 1e6:9.4f} M/s  {row['facts']['memory'] / 1e6:7.0f} MB{pairs}")


if __name__ == "__main__":
    main()
