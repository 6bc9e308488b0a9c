"""The first result in a new process, import and compiling included: python -m benchmarks.first NAME COUNT.

Nothing is kept on the disk between processes, so each begins cold.
"""

import subprocess
import sys
import time

from benchmarks.timing import ROOT, environment


def seconds(name: str, count: int, rounds: int) -> float:
    """The quickest of some processes, from their start to their end."""
    fastest = float("inf")
    for _ in range(rounds):
        clock = time.perf_counter()
        subprocess.run([sys.executable, "-m", "benchmarks.first", name, str(count)], cwd=ROOT, env=environment(), check=True, capture_output=True)
        fastest = min(fastest, time.perf_counter() - clock)
    return fastest


def main() -> None:
    import bismut as bm
    from benchmarks.ours import problem

    scheme, start, step = problem(sys.argv[1], int(sys.argv[2]))
    observe = {"temperature": bm.temperature}
    assert bm.simulate(scheme, start, step=step, steps=100, trajectories=100, observe=observe, seed=1, progress=False).outcome.ok


if __name__ == "__main__":
    main()
