"""One contestant in a process of its own: python -m benchmarks.contest NAME '{"cores": [0]}'.

It prints a line of JSON when it is ready, and one for each line that it reads.
"""

import json
import os
import resource
import sys
import time


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
        clock, used = time.perf_counter(), _used()
        speed = ready.round()
        shared = (time.perf_counter() - clock) / (_used() - used)
        _say({"speed": speed, "effort": speed * shared})


def _used() -> float:
    """Seconds of processors that this process and its children have had: on a busy machine less than have passed."""
    return sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))


def _say(answer: dict) -> None:
    print(f"\n{json.dumps(answer)}", flush=True)


if __name__ == "__main__":
    main()
