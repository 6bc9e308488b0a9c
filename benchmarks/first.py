"""Waiting: the first result in a new process, import and compiling included, and what is asked of a state.

python -m benchmarks.first NAME COUNT    a short run, in this process
python -m benchmarks.first NAME asked    milliseconds of the energy of a state and each of its momenta, asked again

Cold: machine code is kept in a folder that is new for each process. Second: in one that a process of the same kind has filled.
"""

import json
import subprocess
import sys
import tempfile
import time

from benchmarks.timing import ROOT, environment


def seconds(name: str, count: int, rounds: int) -> tuple[float, float]:
    """The quickest of some processes, from their start to their end: cold, and as the second of two."""
    cold, second = zip(*(_both(name, count) for _ in range(rounds)), strict=True)
    return min(cold), min(second)


def _both(name: str, count: int) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        first, second = (_taken(["-m", "benchmarks.first", name, str(count)], BISMUT_PROGRAMS=folder) for _ in range(2))
    return first, second


def importing(rounds: int) -> float:
    """Seconds from the start of a process that imports bismut and names a class of it to its end."""
    return min(_taken(["-c", "import bismut; bismut.System"]) for _ in range(rounds))


def _taken(arguments: list[str], **more: str) -> float:
    clock = time.perf_counter()
    subprocess.run([sys.executable, *arguments], cwd=ROOT, env={**environment(), **more}, check=True, capture_output=True)
    return time.perf_counter() - clock


def asked(name: str) -> dict[str, float]:
    """Milliseconds of what is asked of a state of a gallery system, the best of some calls after the first."""
    command = [sys.executable, "-m", "benchmarks.first", name, "asked"]
    words = subprocess.run(command, cwd=ROOT, env=environment(), check=True, capture_output=True, text=True).stdout
    return json.loads(words.strip().splitlines()[-1])


def _answers(scheme, start, step: float) -> dict[str, float]:
    import jax

    import bismut as bm

    end = bm.simulate(scheme, start, step=step, steps=1, trajectories=1, seed=1, progress=False).final
    state, system = jax.tree.map(lambda x: x[0], end), scheme.system
    questions = {"energy": lambda: system.energy(state)}
    questions |= {f"momentum {name}": lambda name=name: system.momentum_map(name, state) for name in system.symmetries}
    found = {}
    for word, ask in questions.items():
        jax.block_until_ready(ask())
        clocks = []
        for _ in range(20):
            clock = time.perf_counter()
            jax.block_until_ready(ask())
            clocks.append(time.perf_counter() - clock)
        found[word] = 1e3 * min(clocks)
    return found


def main() -> None:
    import bismut as bm
    from benchmarks.ours import problem

    if sys.argv[2] == "asked":
        print(json.dumps(_answers(*problem(sys.argv[1], 0))))
        return
    scheme, start, step = problem(sys.argv[1], int(sys.argv[2]))
    observe = {"temperature": bm.temperature} if scheme.system.has_lagrangian else {"energy": bm.energy}
    assert bm.simulate(scheme, start, step=step, steps=100, trajectories=100, observe=observe, seed=1, progress=False).outcome.ok


if __name__ == "__main__":
    main()
