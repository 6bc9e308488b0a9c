"""One contestant in a process of its own: python -m benchmarks.contest NAME '{"cores": [0], "rounds": 3}' prints a line of JSON."""

import json
import os
import sys


def main() -> None:
    name, settings = sys.argv[1], json.loads(sys.argv[2])
    # Before anything that starts threads is imported.
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, settings["cores"])
    from benchmarks import ours, peers
    from benchmarks.timing import Missing

    contestants = {**ours.CONTESTANTS, **peers.CONTESTANTS}
    settings.pop("cores")
    try:
        print(json.dumps(contestants[name](**settings)))
    except (ImportError, Missing) as problem:
        print(json.dumps({"missing": str(problem)}))


if __name__ == "__main__":
    main()
