"""The first result in a new process, import and compiling included: python -m benchmarks.first NAME COUNT.

Cold: machine code is kept in a folder that is new for each process. Second: in one that a process of the same kind has filled.
"""

import subprocess
import sys
import tempfile
import time

from benchmarks.timing import ROOT, environment


def seconds(name: str, count: int, rounds: int) -> tuple[float, float]:
    """The quickest of some processes, from their start to their end: cold, and as the second of two."""
    return min(_seconds(name, count) for _ in range(rounds)), min(_seconds(name, count, again=True) for _ in range(rounds))


def _seconds(name: str, count: int, again: bool = False) -> float:
    with tempfile.TemporaryDirectory() as folder:
        took = 0.0
        for _ in range(2 if again else 1):
            clock = time.perf_counter()
            command = [sys.executable, "-m", "benchmarks.first", name, str(count)]
            subprocess.run(command, cwd=ROOT, env={**environment(), "BISMUT_PROGRAMS": folder}, check=True, capture_output=True)
            took = time.perf_counter() - clock
        return took


def main() -> None:
    import bismut as bm
    from benchmarks.ours import problem

    scheme, start, step = problem(sys.argv[1], int(sys.argv[2]))
    observe = {"temperature": bm.temperature} if scheme.system.has_lagrangian else {"energy": bm.energy}
    assert bm.simulate(scheme, start, step=step, steps=100, trajectories=100, observe=observe, seed=1, progress=False).outcome.ok


if __name__ == "__main__":
    main()
