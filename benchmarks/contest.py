"""One contestant in a process of its own: python -m benchmarks.contest NAME '{"cores": [0]}'.

It prints a line of JSON when it is ready, and one for each line that it reads.
"""

import json
import os
import sys


def main() -> None:
    name, settings = sys.argv[1], json.loads(sys.argv[2])
    # Before anything that starts threads is imported.
    cores = settings.pop("cores")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores)
    from benchmarks import ours, peers
    from benchmarks.timing import Missing

    contestants = {**ours.CONTESTANTS, **peers.CONTESTANTS}
    try:
        ready = contestants[name](**settings)
    except (ImportError, Missing) as problem:
        _say({"missing": str(problem)})
        return
    _say({"facts": ready.facts})
    for _ in sys.stdin:
        _say({"speed": ready.round()})


def _say(answer: dict) -> None:
    print(f"\n{json.dumps(answer)}", flush=True)


if __name__ == "__main__":
    main()
