"""A run that is cut anywhere and gone on with is the run that was never cut, bit for bit."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles import block, request, run_request
from bismut.ensembles.block_codec import Expected, block_arrays, block_result, checkpoint, checkpoint_arrays
from bismut.ensembles.journal import MemoryJournal
from bismut.errors import BlockError, WriteError
from bismut.executors import Failed, Threads
from bismut.store.zarr_reader import unpack
from bismut.store.zarr_writer import pack

X = lambda state: state.q[0]
OBSERVE = {
    "energy": bm.energy,
    "x": bm.values(X, every=7),
    "some": bm.paths([1, 9], every=5),
    "mean": bm.time_average(X, every=3),
    "low": bm.extremes(X, every=2),
    "rank": bm.quantiles(X, every=4),
    "bins": bm.histogram(X, range=(-2, 2), bins=8, every=1),
    "lag": bm.autocorrelation(X, lags=4, every=2),
    "wound": bm.mean_squared_displacement(lags=5, every=2),
    "strayed": bm.maximum_excursion(),
    "over": bm.first_passage(lambda s: s.q[0] - 0.7, every=2),
    "cross": bm.section(lambda s: s.q[0] - 0.5, at=X, capacity=3),
    "far": bm.Observer(init=lambda s: jnp.abs(s.q[0]), update=lambda m, s: jnp.maximum(m, jnp.abs(s.q[0])), finish=lambda m: m, every=1),
}
FEW = {name: OBSERVE[name] for name in ("energy", "mean", "lag")}
RUN = {"step": 0.05, "steps": 90, "seed": 2, "every": 20, "trajectories": 20, "block": 8, "observe": OBSERVE}


def scheme(bath: bool = False):
    system = bm.mechanical(
        bm.Euclidean(1),
        potential=lambda q, parameters: 0.5 * parameters["k"] * q @ q,
        noise=None if bath else lambda q: 0.3 * q,
        parameters={"k": 1.0},
    )
    return bm.Langevin(system, temperature=0.4, friction=1.0) if bath else bm.Midpoint(system)


def asked(bath: bool = False, **settings):
    made = scheme(bath)
    return request(made, made.start(jnp.ones(1), velocity=jnp.zeros(1)), **(RUN | settings))


@cache
def unbroken():
    """The result of the run that was never cut."""
    return run_request(asked())


def same(a, b) -> None:
    for name, report in a.observables.items():
        assert set(report.variables) == set(b[name].variables)
        for kind, (_, values) in report.variables.items():
            np.testing.assert_array_equal(values, b[name].variables[kind][1], f"{name} {kind}")
    jax.tree.map(np.testing.assert_array_equal, a.final, b.final)
    assert a.outcome == b.outcome


class Power(Exception):
    """It fails."""


class Failing(MemoryJournal):
    """A journal on paper, which is read as it was written; the power fails after so many entries."""

    def __init__(self, asked, lasts=10**9):
        super().__init__()
        self.asked, self.left, self.entries = asked, lasts, 0

    def _write(self, arrays):
        self.left -= 1
        self.entries += 1
        if self.left < 0:
            raise Power
        return unpack(pack(arrays), "")

    def commit(self, variant, block, result):
        arrays = self._write(block_arrays(self.asked, result))
        super().commit(variant, block, block_result(Expected(self.asked), variant, block, arrays))

    def checkpoint(self, variant, block, reached):
        super().checkpoint(variant, block, checkpoint(self._write(checkpoint_arrays(reached))))


@pytest.fixture
def chunks(monkeypatch):
    """Chunks of sixteen steps with a checkpoint at the end of each."""
    monkeypatch.setattr(block.Pace, "steps", lambda self, trajectories: 16)
    monkeypatch.setattr(block, "CADENCE", -1.0)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"mode": "xla", "observe": FEW},
        {"burn_in": 40, "bath": True, "observe": FEW},
        {"sweep": {"k": [0.5, 2.0]}, "observe": FEW},
        {"until": {"energy": 1e-9}, "observe": FEW},
    ],
)
def test_a_run_whose_power_fails_again_and_again(chunks, settings):
    whole, journal = asked(**settings), Failing(asked(**settings))
    failures = 0
    while True:
        journal.left = 2
        try:
            found = run_request(whole, journal=journal, executor=Threads(1))
            break
        except Power:
            failures += 1
    assert failures > 5
    assert not journal.checkpoints
    same(found, run_request(asked(**settings)) if settings else unbroken())


def test_what_is_committed_is_not_computed(chunks, monkeypatch):
    whole = asked()
    journal = Failing(whole)
    run_request(whole, journal=journal)
    first = unbroken()
    monkeypatch.setattr("bismut.ensembles.block_job.run_block", lambda *_: pytest.fail("a block was computed"))
    same(run_request(whole, journal=journal), first)


def test_ended_blocks_go_on(chunks):
    """A finished run, asked for more steps, goes on from its last ones, and equals the longer run; also where the last look was out of turn."""
    short, long = asked(steps=53), asked()
    before = Failing(short)
    run_request(short, journal=before)
    journal = Failing(long)
    journal.checkpoints = {place: result.end for place, result in before.blocks.items()}
    found = run_request(long, journal=journal, executor=Threads(1))
    same(found, unbroken())
    assert journal.entries == 3 * 3  # of each block 37 steps in chunks of sixteen, not 90


def test_enough_is_decided_in_the_order_of_blocks(chunks):
    """Blocks that come late, or from a journal, do not change where `until` stops; those beyond it are not kept."""

    class Backwards:
        remote = False

        def each(self, work, jobs, line):
            yield from [(job, work(job, line)) for job in jobs][::-1]

    settings = {"observe": FEW, "until": {"energy": 0.035}, "trajectories": 160, "steps": 20}
    alone = run_request(asked(**settings), executor=Threads(1))
    assert 30 <= alone.trajectories_run < 160
    journal = Failing(asked(**settings))
    same(run_request(asked(**settings), executor=Backwards(), journal=journal), alone)
    assert sorted(journal.blocks) == [(0, i) for i in range(alone.trajectories_run // 8)]
    same(run_request(asked(**settings), journal=journal), alone)


def test_parts_of_a_run(chunks):
    """Blocks A:B of separate runs, put into one journal, are the whole run."""
    whole = asked()
    journals = [Failing(whole), Failing(whole)]
    parts = [run_request(whole, journal=journal, blocks=blocks) for journal, blocks in zip(journals, (range(0, 1), range(1, 3)), strict=True)]
    assert [part.trajectories_run for part in parts] == [8, 12]
    assert "blocks 1:3 of 3, 12 of 20 trajectories" in str(parts[1].outcome)
    both = Failing(whole)
    both.blocks = journals[0].blocks | journals[1].blocks
    same(run_request(whole, journal=both), unbroken())


def test_a_deadline_stops_a_run(chunks):
    journal = Failing(asked())
    with pytest.raises(KeyboardInterrupt):
        run_request(asked(), deadline=-1.0, journal=journal)
    assert not journal.blocks


UNTIL = {"observe": FEW, "until": {"energy": 1e-9}, "trajectories": 64, "steps": 20}


def test_a_block_that_fails_ends_a_run_that_looks_for_small_errors(chunks):
    """Behind it nobody can tell when errors are small enough: no more blocks are begun, and those that were run are kept."""

    class Stumbling:
        remote = False

        def each(self, work, jobs, line):
            for job in jobs:
                ahead = next(jobs, None)
                yield job, Failed(3, "it stumbled") if job.block == 2 else work(job, line)
                if ahead is not None:
                    yield ahead, work(ahead, line)

    whole = asked(**UNTIL)
    journal = Failing(whole)
    with pytest.raises(BlockError, match=r"block 2 could not be run\. The others are kept"):
        run_request(whole, journal=journal, executor=Stumbling())
    assert sorted(journal.blocks) == [(0, 0), (0, 1), (0, 3)]
    same(run_request(whole, journal=journal), run_request(whole))


def test_a_block_whose_workers_die_ends_the_run_and_those_at_work_are_kept(chunks):
    """Three workers died at one block: no further blocks are begun, those in progress stop and can be continued, and the run can be resumed."""

    class Dying:
        remote = False

        def each(self, work, jobs, line):
            yield (first := next(jobs)), work(first, line)
            yield next(jobs), Failed(3, "Its worker died (signal 9).", lost=True)
            assert line.stopped()
            assert next(jobs, None) is not None  # there would be more

    whole = asked(observe=FEW)
    journal = Failing(whole)
    with pytest.raises(BlockError, match=r"block 1 could not be run\. The others are kept, and `resume` tries again.*3 times.*\n.*signal 9"):
        run_request(whole, journal=journal, executor=Dying())
    assert sorted(journal.blocks) == [(0, 0)]
    same(run_request(whole, journal=journal), run_request(whole))


class Full(MemoryJournal):
    """A journal on a disk that takes so many blocks."""

    def __init__(self, takes):
        super().__init__()
        self.takes = takes

    def commit(self, variant, block, result):
        if len(self.blocks) >= self.takes:
            raise WriteError("No space left on device")
        super().commit(variant, block, result)


@pytest.mark.parametrize("until", [{}, {"energy": 1e-9}])
def test_what_is_in_memory_when_the_disk_is_full_is_in_the_result(chunks, until):
    class Ahead:
        remote = False

        def each(self, work, jobs, line):
            yield from [(job, work(job, line)) for job in jobs]

    whole, journal = asked(**UNTIL | {"until": until}), Full(3)
    found = run_request(whole, journal=journal, executor=Ahead())
    assert found.trajectories_run == 64
    assert sorted(journal.blocks) == [(0, 0), (0, 1), (0, 2)]


def test_a_block_that_is_stopped_is_kept_whenever_it_hears_of_it(chunks, monkeypatch):
    """Wherever between two questions the wish to stop comes, what the block has done is kept."""
    monkeypatch.setattr(block, "CADENCE", 1e9)
    whole = asked(observe=FEW)
    for asks in range(1, 8):
        questions, kept = iter([False] * asks), []
        control = block.BlockHooks(lambda questions=questions: next(questions, True))
        control.keep = lambda variant, number, point, kept=kept: kept.append(point.done)
        result = block.run_block(whole, 0, 0, control)
        if result is not None and result.steps < whole.steps:
            assert kept == [result.steps]
