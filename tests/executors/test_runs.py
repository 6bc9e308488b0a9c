"""a run on processes or on a cluster, whatever happens to its workers  =  the run on one thread, bit for bit

Real workers with JAX, real SIGKILLs in the middle of a block. One cluster serves all tests of this folder, for a worker takes seconds to begin.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles import block_job, run_request
from bismut.ensembles.journal import MemoryJournal
from bismut.errors import BlockError, DomainError, ProcessError
from bismut.executors import Processes, Threads
from tests.ensembles.test_journal import FEW, asked, same

RUN = {"observe": FEW, "trajectories": 40, "block": 4}
BLOCKS = 10


class Troubled:
    """An executor whose workers note every block they begin, and one of which gets into trouble in the middle of a block."""

    remote = True

    def __init__(self, inner, folder: Path, trouble: str = "", block: int = 3):
        self.inner, self.folder, self.trouble, self.block = inner, folder, trouble, block

    def each(self, work, jobs, line):
        yield from self.inner.each(Noted(work, str(self.folder), self.trouble, self.block), jobs, line)

    def begun(self) -> dict[int, int]:
        return {int(file.name): len(file.read_text().split()) for file in self.folder.glob("[0-9]*")}

    @property
    def died(self) -> bool:
        return (self.folder / "died").exists()


class Noted:
    def __init__(self, work, folder, trouble, block):
        self.work, self.folder, self.trouble, self.block = work, folder, trouble, block

    def __call__(self, job, line):
        if job.begun is None:
            with (Path(self.folder) / str(job.block)).open("a") as file:
                file.write(f"{os.getpid()}\n")
        died, chunks = Path(self.folder) / "died", []

        def stopped():
            chunks.append(1)
            if job.block == self.block and len(chunks) == 3:
                if self.trouble == "die" and not died.exists():
                    died.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
                if self.trouble == "raise":
                    raise FloatingPointError("the third chunk is not for me")
            return line.stopped()

        return self.work(job, line._replace(stopped=stopped))


@pytest.fixture
def cluster(local_cluster):
    return local_cluster


@pytest.fixture(scope="module")
def alone():
    return run_request(asked(**RUN), executor=Threads(1))


def test_two_workers_of_a_cluster_one_killed_in_the_middle_of_a_block(cluster, alone, tmp_path):
    """The result is that of one thread, every block is committed once, and only what was lost is computed again."""
    troubled, journal = Troubled(cluster, tmp_path, "die"), MemoryJournal()
    same(run_request(asked(**RUN), executor=troubled, journal=journal), alone)
    begun = troubled.begun()
    assert len(journal.blocks) == len(begun) == BLOCKS
    assert begun[3] == 2
    assert sum(begun.values()) <= BLOCKS + 2, "the block it was at, and at most one that nobody had fetched yet"


def test_a_block_that_always_fails_is_named_the_others_are_kept_and_only_it_is_run_again(cluster, alone, tmp_path):
    journal = MemoryJournal()
    (tmp_path / "first").mkdir()
    troubled = Troubled(cluster, tmp_path / "first", "raise")
    with pytest.raises(BlockError, match=r"^block 3 could not be run. The others are kept(.|\n)*3 times(.|\n)*the third chunk is not for me"):
        run_request(asked(**RUN), executor=troubled, journal=journal)
    assert sorted(journal.blocks) == [(0, block) for block in range(BLOCKS) if block != 3]
    (tmp_path / "again").mkdir()
    again = Troubled(cluster, tmp_path / "again")
    same(run_request(asked(**RUN), executor=again, journal=journal), alone)
    assert again.begun() == {3: 1}


@pytest.mark.long
def test_processes_take_lambdas_sweeps_and_blocks_in_turns(monkeypatch, tmp_path):
    """Blocks come back after every chunk and go on somewhere else, one worker dies, and `until` stops where it stops on one thread."""
    monkeypatch.setattr(block_job, "TIME_SLICE", 0.0)
    scale = np.array([1.5])
    observe = FEW | {"own": lambda state: scale[0] * state.q[0] ** 3}
    settings = {"observe": observe, "sweep": {"k": [0.5, 2.0]}, "until": {"energy": 0.05}, "trajectories": 300, "block": 16, "burn_in": 20}
    with Processes(2) as processes:
        troubled = Troubled(processes, tmp_path, "die", block=1)
        found = run_request(asked(**settings), executor=troubled)
    monkeypatch.undo()
    whole = run_request(asked(**settings), executor=Threads(1))
    same(found, whole)
    assert found.trajectories_run == whole.trajectories_run == [128, 288]
    assert troubled.died


def test_a_worker_with_other_software_is_refused(monkeypatch):
    """Not the same numbers, but a refusal with the difference."""
    made = block_job.computes()
    monkeypatch.setattr(block_job, "computes", lambda: made | {"versions": made["versions"] | {"jax": "0.0.1"}})
    work = block_job.BlockJob(asked(**RUN), keeps=False, ends=False)
    make, given = work.__reduce__()
    monkeypatch.undo()
    with pytest.raises(ProcessError, match=rf"jax {jax.__version__} instead of 0.0.1"):
        make(*given)


def test_simulate_takes_executors_and_nothing_else(cluster, alone):
    scheme = asked(**RUN).scheme
    start = scheme.start(np.ones(1), velocity=np.zeros(1))
    run = {"step": 0.05, "steps": 90, "seed": 2, "every": 20} | RUN
    same(bm.simulate(scheme, start, executor=cluster, **run), alone)
    with pytest.raises(DomainError, match=r"Threads\(n\), Processes\(n\) or Dask"):
        bm.simulate(scheme, start, executor=2, **run)


SHARING = """
import distributed, jax, numpy as np
jax.config.update("jax_enable_x64", True)
import bismut as bm
from bismut.engines.native.engine import NativeProgram
from bismut.executors import Dask, Threads

shared, advance = set(), NativeProgram.advance

def noted(self, course, numbers, batch, schedule):
    shared.add(schedule.threads)
    return advance(self, course, numbers, batch, schedule)

NativeProgram.advance = noted
corners = np.stack(np.unravel_index(np.arange(512), (8, 8, 8)), -1)
system = bm.mechanical(bm.Euclidean(3) ** 512, potential=bm.lennard_jones(cutoff=(1.2, 1.5)), box=bm.Box((9.6, 9.6, 9.6)))
scheme = bm.Langevin(system, temperature=1.0, friction=1.0)
start = scheme.start(1.2 * corners, temperature=1.0)
run = lambda executor: bm.simulate(scheme, start, step=0.005, steps=40, seed=3, executor=executor, progress=False).final
alone, used = run(Threads(1)), set(shared)
shared.clear()
cluster = dict(n_workers=1, threads_per_worker=2, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address="127.0.0.1:0")
with distributed.LocalCluster(silence_logs="ERROR", **cluster) as workers, Dask(workers) as executor:
    together = run(executor)
assert (used, shared) == ({1}, {2}), (used, shared)
jax.tree.map(np.testing.assert_array_equal, alone, together)
print("the same bits")
"""


def test_the_threads_of_a_worker_share_one_trajectory():
    """One box of points, on a worker of Dask with two threads, has the bits of one thread. In a process of its own: the worker is a part of it,
    so that the threads that are asked for can be seen."""
    pytest.importorskip("distributed")
    done = subprocess.run([sys.executable, "-c", SHARING], capture_output=True, text=True, timeout=300, check=False)
    assert "the same bits" in done.stdout, done.stderr
