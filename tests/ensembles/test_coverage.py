"""An error says how far off an average may be: of many repetitions it must cover the exact value as often as it claims.

Two standard errors hold 95 of 100 averages; of 60 repetitions of a right rule 49 or fewer are covered once in 5000 times. In the double well, barrier
4 kT, jumps are some 200 time units apart. Seeds are fixed.
"""

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles import request
from bismut.ensembles.block import run_block
from bismut.ensembles.moments import gather
from bismut.ensembles.observers.records import standard_error
from bismut.ensembles.observers.time_average import split_r_hat
from bismut.ensembles.observers.watcher import Clock
from bismut.ensembles.ordered_merge import GROWTH, MINIMUM

X = lambda state: state.q[0]


@functools.cache
def bath(barrier: float) -> bm.Langevin:
    energy = (lambda q: barrier * (q[0] ** 2 - 1) ** 2) if barrier else (lambda q: 0.5 * q @ q)
    return bm.Langevin(bm.mechanical(bm.Euclidean(1), potential=energy), temperature=1.0, rate=1.0)


def repetitions(scheme: bm.Langevin, *, trajectories: int, steps: int, burn_in: int, runs: int = 60) -> list:
    """Reports of runs of so many trajectories: each is a block of one large run."""
    watcher = bm.time_average(X)
    asked = request(
        scheme,
        scheme.start(jnp.ones(1), temperature=1.0),
        step=0.1,
        steps=steps,
        every=max(1, steps // 512),
        burn_in=burn_in,
        trajectories=runs * trajectories,
        block=trajectories,
        seed=5,
        observe={"x": watcher},
    )
    clock = Clock(0.0, 0.1, asked.every, steps, trajectories, burn_in)
    blocks = [run_block(asked, 0, block) for block in range(runs)]
    return [watcher.report("x", block.summaries[0], clock).variables for block in blocks if block is not None]


def share(reports: list, of) -> float:
    return float(np.mean([bool(of({name: value for name, (_, value) in report.items()})) for report in reports]))


def short_runs(barrier: float, steps: int, every: int, burn_in: int) -> Any:
    scheme = bath(barrier)
    run = {"step": 0.1, "steps": steps, "every": every, "burn_in": burn_in, "trajectories": 4000, "seed": 5, "progress": False}
    return bm.simulate(scheme, scheme.start(jnp.ones(1), temperature=1.0), observe={"x": bm.time_average(X)}, **run).x


covers = lambda x: abs(x["mean"]) <= 2 * x["stderr"]
trusted = lambda x: x["trusted"]


@pytest.mark.parametrize("trajectories", [1, 2, 8])
def test_an_oscillator_is_covered_and_trusted(trajectories):
    reports = repetitions(bath(0.0), trajectories=trajectories, steps=4096, burn_in=100)
    assert share(reports, trusted) > 0.95
    assert share(reports, covers) > 49 / 60


@pytest.mark.parametrize("trajectories", [8, 29])
def test_few_trajectories_that_seldom_jump(trajectories):
    """Each saw about two jumps. Blocking within trajectories covered 78 and 88 of 100, and was trusted; the spread between them covers, and R̂ says
    that they disagree."""
    reports = repetitions(bath(4.0), trajectories=trajectories, steps=4096, burn_in=2000)
    assert share(reports, covers) > 49 / 60
    assert share(reports, trusted) == 0.0
    assert all(float(report["stderr"][1]) >= float(report["stderr_between"][1]) for report in reports)


def test_many_trajectories_that_remember_their_start():
    """All began in the right well; a bias that they share is seen in no spread."""
    reports = repetitions(bath(4.0), trajectories=256, steps=20480, burn_in=100, runs=8)
    assert share(reports, covers) < 0.8
    assert share(reports, trusted) == 0.0


def test_a_long_run_is_trusted_again():
    reports = repetitions(bath(4.0), trajectories=8, steps=102400, burn_in=4000, runs=20)
    assert share(reports, trusted) > 0.8
    assert share(reports, covers) > 0.7  # 14 or fewer of 20 once in 3000 times


@pytest.mark.parametrize(("steps", "every"), [(20, 1), (20, 10)])
def test_many_trajectories_shorter_than_their_memory(steps, every):
    """Their spread is an honest error once the start is forgotten, with R̂ > 1.1 or with too few looks for it; and is trusted only then."""
    x = {burn_in: short_runs(0.0, steps, every, burn_in) for burn_in in (0, 4000)}
    assert not x[4000].r_hat <= 1.1
    assert bool(x[4000].trusted)
    assert abs(float(x[4000].mean)) < 4 * float(x[4000].stderr)
    assert not bool(x[0].trusted)
    assert abs(float(x[0].mean)) > 20 * float(x[0].stderr)
    assert "start" in x[0].text
    assert "correlation times" not in x[0].text


@pytest.mark.parametrize("barrier", [4.0, 5.5, 7.0])
def test_short_trajectories_in_two_wells(barrier):
    """After 100 time units some have left the well where all began: the start is seen, and not trusted, though no trajectory is longer than 2."""
    x = short_runs(barrier, 20, 1, 1000)
    assert float(x.mean) > 4 * float(x.stderr)
    assert not bool(x.trusted)


def test_one_look_tells_nothing_of_memory():
    x = short_runs(0.0, 1, 2, 4000)
    assert not bool(x.trusted)
    assert "one look at each trajectory" in x.text


def test_r_hat_is_that_of_halves():
    """Against its definition, with two parts to each trajectory."""
    x = np.random.default_rng(3).normal(size=(7, 2, 64)) + np.random.default_rng(4).normal(size=(7, 1, 1))
    parts = x.reshape(14, 64)
    between, within = parts.mean(1).var(ddof=1), parts.var(1, ddof=1).mean()
    level = lambda size: x.reshape(7, -1, size).mean(2).var(1).mean()
    levels = np.array([level(2**power) for power in range(7)])
    found = split_r_hat(levels, np.asarray(x.reshape(7, -1).mean(1).var(ddof=1)), np.array(7), 128)
    assert float(found) == pytest.approx(np.sqrt(1 - 1 / 64 + between / within), rel=1e-12)


def test_one_trajectory_says_what_it_cannot_know():
    scheme = bath(4.0)
    run = {"step": 0.1, "steps": 20_000, "trajectories": 1, "seed": 1, "burn_in": 100}
    one = bm.simulate(scheme, scheme.start(jnp.ones(1), temperature=1.0), observe={"p": bm.time_average(lambda s: s.p[0], every=10)}, **run).p
    assert bool(one.trusted)
    assert "nothing of places where it has not been" in one.text


@pytest.mark.parametrize(("count", "apart", "said"), [(8, False, True), (8, True, False), (40, False, False)])
def test_a_few_from_one_point_say_what_they_cannot_know(count, apart, said):
    """Under a barrier of 100 kT none leaves its well, and all agree; those from both wells disagree. Thirty or more are taken as they are."""
    well = bm.mechanical(bm.Euclidean(1), mass=1.0, potential=lambda q: 100.0 * (q @ q - 1.0) ** 2)
    scheme = bm.Langevin(well, temperature=1.0, friction=10.0)
    q = np.where(np.arange(count) % 2, 1.0, -1.0)[:, None] if apart else np.ones(1)
    run = {"step": 0.02, "steps": 4000, "trajectories": count, "seed": 1, "burn_in": 500}
    x = bm.simulate(scheme, scheme.start(q, temperature=1.0), observe={"x": bm.time_average(lambda s: s.q[0], every=5)}, **run).x
    assert bool(x.trusted) != apart
    assert ("all began at one point, and know nothing of places where none has been" in x.text) == said


# Stopping at an error.


def stopped(values: np.ndarray, target: float, looks) -> float:
    """The mean where the standard error is first small enough."""
    for n in looks:
        seen = gather(values[:n])
        if standard_error(seen) <= target:
            return float(seen.mean)
    return float(values.mean())


@pytest.mark.parametrize("target", [0.4, 0.2, 0.1])
def test_stopping_at_an_error_hardly_prefers_small_means(target):
    """q⁴ of a Gaussian, mean 1: stopping after any 8 from 32 on lost up to 0.95 of the error asked for (0.19 of the mean at 0.2)."""
    rng = np.random.default_rng(0)
    looks = [int(MINIMUM * GROWTH**k) for k in range(9)]
    means = np.array([stopped(rng.normal(size=4096) ** 4 / 3, target, looks) for _ in range(400)])
    assert abs(means.mean() - 1) < 0.45 * target + 3 * means.std() / 20
    assert np.sqrt(np.mean((means - 1) ** 2)) < 1.35 * target


def test_a_run_until_an_error_looks_seldom():
    """⟨q⁴⟩ = 3 kT²/k², blocks of 8: errors are looked at after 128, 192, 288, 432, ... trajectories, whatever the blocks."""
    scheme = bath(0.0)
    run = {"step": 0.3, "steps": 20, "every": 20, "trajectories": 1024, "block": 8, "observe": {"x": lambda s: s.q[0] ** 4}}
    for seed in range(2):
        result = bm.simulate(scheme, scheme.start(jnp.zeros(1), temperature=1.0), until={"x": 0.9}, seed=seed, **run)
        assert result.outcome.trajectories in (128, 192, 288, 432, 648, 976, 1024)
        assert float(result.x.stderr[-1]) <= 0.9 or result.outcome.trajectories == 1024


def test_an_error_that_rests_on_one_trajectory_is_not_believed():
    assert standard_error(gather(np.r_[np.zeros(127), 1.0])) == float("inf")
    assert standard_error(gather(np.full(128, 0.1))) < 1e-15
    assert np.isfinite(standard_error(gather(np.random.default_rng(0).normal(size=128))))
