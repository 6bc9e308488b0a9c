"""The run: until an error is small, after a burn-in, over a grid of parameters, planned, interrupted, in any number of chunks."""

import functools
import io
import os
import signal
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console

import bismut as bm
from bismut.ensembles import block, block_job, interruption, run
from bismut.ensembles.progress import Progress
from bismut.ensembles.task import compilations
from bismut.errors import DomainError
from bismut.executors import Threads


@functools.cache
def system() -> bm.System:
    return bm.mechanical(
        bm.Euclidean(1),
        potential=lambda q, parameters: 0.25 * parameters["k"] * jnp.sum(q**4) + 0.1 * q[0],
        noise=lambda q, parameters: parameters["s"] * jnp.array([jnp.sin(q[0]) + q[0]]),
        force=lambda q, v: -0.5 * v,
        parameters={"k": 1.0, "s": 0.5},
    )


def scheme(**parameters) -> bm.Action:
    return bm.VariationalEuler(system().with_parameters({"k": 1.0, "s": 0.5} | parameters))


def start() -> bm.State:
    return scheme().start(jnp.array([0.4]), velocity=jnp.array([0.1]))


RUN = {"step": 0.05, "steps": 30, "seed": 2, "every": 10, "block": 4}


def same(a, b) -> bool:
    return jax.tree.all(jax.tree.map(np.array_equal, a, b))


def test_burn_in_is_a_run_that_nobody_watches():
    late = bm.simulate(scheme(), start(), trajectories=4, burn_in=13, **RUN)
    whole = bm.simulate(scheme(), start(), trajectories=4, **(RUN | {"steps": 43}))
    assert same(late.final, whole.final)
    np.testing.assert_allclose(late.times, 0.05 * (13 + np.array([0, 10, 20, 30])))


def test_sweep_is_one_run_per_value_and_one_program():
    values = {"k": [0.5, 1.0, 2.0], "s": [0.1, 0.3]}
    before = bm.simulate(scheme(), start(), trajectories=6, **RUN)
    compiled = compilations()
    swept = bm.simulate(scheme(), start(), trajectories=6, sweep=values, **RUN)
    assert compilations() == compiled
    assert swept.energy.mean.dims == ("k", "s", "time")
    for i, k in enumerate(values["k"]):
        for j, s in enumerate(values["s"]):
            alone = bm.simulate(scheme(k=k, s=s), start(), trajectories=6, **RUN)
            assert np.array_equal(swept.energy.mean.values[i, j], alone.energy.mean.values)
            assert np.array_equal(swept.final.q[i, j], alone.final.q)
    assert before.energy.mean.dims == ("time",)


def test_sweep_of_what_is_not_there():
    with pytest.raises(DomainError, match="Did you mean 'k'"):
        bm.simulate(scheme(), start(), sweep={"kk": [1.0]}, **RUN)
    with pytest.raises(DomainError, match="a list of one or more numbers"):
        bm.simulate(scheme(), start(), sweep={"k": 1.0}, **RUN)


def test_until_stops_at_the_first_look_that_is_good_enough():
    """And is the run of as many trajectories, to the bit. Looks are after 128 trajectories, 192, 288, ..."""
    target = 0.03
    stopped = bm.simulate(scheme(), start(), trajectories=400, until={"energy": target}, **RUN)
    used = stopped.outcome.trajectories
    assert 128 < used < 400
    assert float(stopped.energy.stderr[-1]) <= target
    fewer = bm.simulate(scheme(), start(), trajectories=round(used / 1.5), **RUN)
    assert float(fewer.energy.stderr[-1]) > target
    exact = bm.simulate(scheme(), start(), trajectories=used, **RUN)
    assert np.array_equal(exact.energy.mean, stopped.energy.mean)
    assert "small enough" in str(stopped.outcome)
    with pytest.raises(DomainError, match="Did you mean 'energy'"):
        bm.simulate(scheme(), start(), until={"enrgy": 1.0}, **RUN)


@pytest.mark.parametrize("chunk", [1, 3, 64])
def test_chunks_do_not_matter(monkeypatch, chunk):
    """Not to the bit, whatever is observed."""
    observe = {"energy": bm.energy, "mean": bm.time_average(lambda s: s.q[0], every=5), "far": bm.extremes(lambda s: s.q, every=2)}
    whole = bm.simulate(scheme(), start(), trajectories=4, observe=observe, **RUN)
    monkeypatch.setattr(block.Pace, "steps", lambda self, trajectories: chunk)
    cut = bm.simulate(scheme(), start(), trajectories=4, observe=observe, **RUN)
    assert same(cut.final, whole.final)
    for name in observe:
        for kind, (_, values) in whole[name].variables.items():
            np.testing.assert_array_equal(values, cut[name].variables[kind][1])


def test_dry_run_returns_its_plan_and_prints_nothing(capsys):
    plan = bm.simulate(scheme(), start(), trajectories=10, dry_run=True, **RUN)
    assert plan.path_steps == 300
    assert plan.seconds > 0
    assert plan.memory > 0
    assert capsys.readouterr().out == ""  # a prompt shows what is returned, and would show it twice
    text = str(plan)
    for words in ("10 trajectories × 30 steps", "memory", "disk", "path-steps/s"):
        assert words in text


def test_what_does_not_fit_is_refused_with_advice():
    with pytest.raises(DomainError, match="keep_final=False"):
        bm.simulate(scheme(), start(), trajectories=10**13, **(RUN | {"block": 2048}))


@pytest.mark.skipif(not hasattr(signal, "SIGINT") or threading.current_thread() is not threading.main_thread(), reason="signals need the main thread")
def test_first_interrupt_keeps_what_is_complete(monkeypatch):
    """Interrupted while its third block runs, a run returns the first two, marked."""
    whole = bm.simulate(scheme(), start(), trajectories=8, **RUN)
    rounds = []

    def slow(*arguments):
        rounds.append(1)
        if len(rounds) == 3:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.2)
        return block.run_block(*arguments)

    monkeypatch.setattr(block_job, "run_block", slow)
    monkeypatch.setattr(run, "Threads", lambda: Threads(1))
    result = bm.simulate(scheme(), start(), trajectories=400, **RUN)
    assert not result.outcome.complete
    assert "interrupted with 8 of 400" in str(result.outcome)
    assert same(result.final, whole.final)
    assert np.array_equal(result.energy.mean, whole.energy.mean)


def test_an_interrupt_before_the_first_look_leaves_nothing(monkeypatch):
    def too_early(request, variant, number, control, begun):
        control.stopped = lambda: True
        return block.run_block(request, variant, number, control, begun)

    monkeypatch.setattr(block_job, "run_block", too_early)
    with pytest.raises(KeyboardInterrupt, match="before anything was complete"):
        bm.simulate(scheme(), start(), trajectories=8, **RUN)


def test_second_interrupt_stops_at_once(monkeypatch):
    """One block, so that exactly two interrupts are sent; the second only when the first was heard."""
    heard = threading.Event()
    hear = interruption.Stop._hear

    def listening(self, number, frame):
        heard.set()
        hear(self, number, frame)

    def stubborn(*arguments):
        for _ in range(2):
            heard.clear()
            os.kill(os.getpid(), signal.SIGINT)
            assert heard.wait(60)

    monkeypatch.setattr(interruption.Stop, "_hear", listening)
    monkeypatch.setattr(block_job, "run_block", stubborn)
    with pytest.raises(KeyboardInterrupt):
        bm.simulate(scheme(), start(), trajectories=RUN["block"], **RUN)


def test_silent_when_not_a_terminal(capsys):
    bm.simulate(scheme(), start(), trajectories=4, **RUN)
    assert capsys.readouterr() == ("", "")


def test_progress_shows_compiling_apart_then_trajectories_rate_and_headline():
    screen = io.StringIO()
    newest = np.array([1.25])
    with Progress(True, 4, 30, "energy", Console(file=screen, force_terminal=True, width=200)) as bar:
        bar.advance(10, 4, newest)
        bar.advance(20, 4, newest)
    text = screen.getvalue()
    for words in ("compiling", "running", "4/4 trajectories", "energy 1.25", "100%"):
        assert words in text
