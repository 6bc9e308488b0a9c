"""Samples of a bath: they end by work and by errors, never by the clock; they notice what has not settled, and what explodes. Seeds are fixed."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings import sampling
from bismut.findings.bath import bath_of
from bismut.findings.cost import operations_of, step_operations
from bismut.findings.equilibrium import sampled_values
from bismut.findings.equilibrium_report import equilibrium
from bismut.findings.gibbs import quadrature
from bismut.findings.order_checks import drift
from bismut.findings.statistics import holm_verdicts, mean_of
from bismut.mechanics import State
from bismut.programs import trace
from tests.findings.studies import study

pytestmark = pytest.mark.usefixtures("compiled_quickly")


def oscillator(rate: float = 1.0) -> bm.Langevin:
    return bm.Langevin(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q), temperature=1.0, rate=rate)


def sampled(scheme: bm.Langevin, **more) -> sampling.Sample:
    state = State(jnp.zeros(1), jnp.zeros(1))
    bath, _ = bath_of(scheme, state, 0.1, 0.0)
    assert bath is not None
    settings = {"step": 0.1, "seed": 4, "budget": 1.0, "tolerance": 0.05, "t0": 0.0} | more
    return sampling.sample(scheme, state.q, bath, sampled_values(study(scheme, state, 0.1), bath), **settings)


def test_a_busy_machine_gives_the_same_sample(monkeypatch):
    """The clock may do what it likes: it runs a thousand times as fast, as on a machine that has no time for us."""
    quiet = sampled(oscillator(), budget=0.02)
    real = time.monotonic
    monkeypatch.setattr(sampling.time, "monotonic", lambda: 1000 * real())
    busy = sampled(oscillator(), budget=0.02)
    assert all(np.array_equal(quiet.values[name], busy.values[name]) for name in quiet.values)
    assert (quiet.settled, quiet.failed, quiet.trajectories) == (busy.settled, busy.failed, busy.trajectories)


def test_slow_positions_are_waited_for():
    """Momenta forget in 0.1, positions in 10: looks go further apart until the last one has forgotten the first."""
    found = sampled(oscillator(10.0), budget=10.0)
    U = mean_of(found.values["potential"])
    assert found.settled == 0
    assert abs(U.value - 0.5) < 4 * U.error


def test_a_sample_that_cannot_settle_says_so():
    assert sampled(oscillator(10.0), budget=0.001).settled == -1


def test_advice_is_not_given_before_equilibrium():
    scheme = oscillator(10.0)
    ask = {"step": 0.2, "tolerance": 0.02, "seed": 1}
    early = bm.advise_step(scheme, scheme.start(jnp.zeros(1), temperature=1.0), budget=2e-5, **ask)
    assert np.isnan(early.step)
    assert "no advice" in repr(early)
    late = bm.advise_step(scheme, scheme.start(jnp.zeros(1), temperature=1.0), budget=5.0, **ask)
    assert late.doubt == ""
    assert all(abs(curve.limit) < 5 * curve.limit_error for curve in late.curves)


@pytest.mark.parametrize(("step", "verdict"), [(1.9, "pass"), (2.02, "fail"), (2.1, "fail"), (3.0, "fail")])
def test_a_step_beyond_the_limit_of_stability(step, verdict):
    """hω = 2 for every splitting; beyond it energies grow without bound, and their errors with them, so that nothing else fails."""
    findings = equilibrium(study(oscillator(0.1), State(jnp.zeros(1), jnp.zeros(1)), step, 3, budget=3.0, tolerance=0.03))
    assert {f.law: f.verdict.value for f in holm_verdicts(findings)}["stability"] == verdict


def test_a_step_beyond_the_limit_without_a_bath():
    scheme = bm.Verlet(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q @ q))
    start = State(jnp.array([0.3]), jnp.array([0.1]))
    for step, verdict in ((1.9, "pass"), (2.0001, "fail"), (2.1, "fail")):
        assert {f.law: f.verdict.value for f in holm_verdicts(drift(study(scheme, start, step)))}["energy drift"] == verdict


def test_quadrature_over_a_box_where_squares_overflow():
    """Far out U² is infinite in floating point and its weight is zero."""
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.exp(3 * q @ q))
    scheme = bm.Langevin(system, temperature=1.0, rate=1.0)
    bath, _ = bath_of(scheme, State(jnp.zeros(1), jnp.zeros(1)), 0.1, 0.0)
    assert bath is not None
    known = quadrature(system, bath, {"U": lambda s: system.potential(s.q)}, np.array([[-3.0], [3.0]]), 0.0)
    assert known is not None
    U = np.exp(3 * np.linspace(-3, 3, 20001) ** 2)
    weight = np.exp(-U)
    mean = np.sum(weight * U) / weight.sum()
    assert known["U"][0] == pytest.approx(mean, rel=1e-6)
    assert known["U"][1] == pytest.approx(np.sqrt(np.sum(weight * (U - mean) ** 2) / weight.sum()), rel=1e-5)


# Work.


def test_work_is_counted_with_its_loops():
    loop = lambda x: jax.lax.fori_loop(0, 10, lambda _, y: jnp.sin(y) * 2, x)
    once, ten = (operations_of(trace(f, jnp.ones(3)).program) for f in (lambda x: jnp.sin(x) * 2, loop))
    assert once == 6
    assert 60 <= ten <= 100


def test_work_grows_with_pairs():
    def bodies(count: int) -> float:
        system = bm.rigid_bodies(mass=np.ones(count), inertia=np.ones((count, 3)), potential=bm.dipoles(np.ones((count, 3))))
        return step_operations(bm.Verlet(system), State(system.space.origin(), system.space.zero()))

    few, more, many = map(bodies, (16, 32, 64))
    assert (many - 2 * more) / (more - 2 * few) == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize("exact", [True, False])
def test_a_reference_that_cannot_be_paid_is_not_measured(monkeypatch, exact):
    """The sample of the scheme itself stands; what it would be compared with, Metropolised or at a second temperature, says what it would cost."""
    calls = []

    def dear(*given, **more):
        calls.append(given)
        if len(calls) > 1:
            raise sampling.BudgetExceeded("64 trajectories take about 1000 s; give budget=")
        return sampling.sample(*given, **more)

    monkeypatch.setattr("bismut.findings.equilibrium_report.sample", dear)
    monkeypatch.setattr("bismut.findings.gibbs.quadrature", lambda *given: None)
    if not exact:
        monkeypatch.setattr("bismut.findings.gibbs.metropolised", lambda *given: None)
    scheme = oscillator()
    findings = equilibrium(study(scheme, State(jnp.zeros(1), jnp.zeros(1)), 0.1, 4, budget=0.3, tolerance=0.05))
    average = next(finding for finding in findings if finding.law == "⟨U⟩/kT")
    assert len(calls) == 2
    assert not average.known
    assert "take about 1000 s" in average.how
    assert next(finding for finding in findings if finding.law.startswith("temperature")).known
