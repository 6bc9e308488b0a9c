"""ΔH = heat + work + error, trajectory by trajectory; work obeys Jarzynski's equality; temperature may follow a schedule."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.ensembles.task import compilations
from bismut.programs.evaluation import evaluate
from tests.systems import separable

T = 0.6
slow = lambda *case: pytest.param(*case, marks=pytest.mark.slow)


def dragged(t_end=2.0):
    """An anharmonic trap dragged by 1.5: its free energy does not change."""
    centre = lambda t: 1.5 * jnp.clip(t / t_end, 0.0, 1.0)
    return bm.mechanical(bm.Euclidean(1), potential=lambda q, t: 0.5 * (q[0] - centre(t)) ** 2 + 0.1 * (q[0] - centre(t)) ** 4)


@pytest.mark.parametrize("splitting", [bm.BAOAB, slow(bm.ABOBA), slow(bm.OBABO), slow(bm.GLA(bm.Verlet)), bm.Metropolised()], ids=str)
def test_the_books_balance(splitting):
    """The sum of the ledger is the change of H measured from the states, to round-off."""
    system = dragged()
    scheme = bm.Langevin(system, T, 0.8, splitting)
    start = scheme.start(jnp.array([0.3]), velocity=jnp.array([0.5]), ledger=True)
    run = bm.trajectory(scheme, start, step=0.05, steps=60, seed=2)
    energy = np.asarray(evaluate(jax.vmap(system.energy), run.states, run.times))
    ledger = jax.tree.map(np.asarray, run.states.ledger)
    assert np.allclose(energy - energy[0], ledger.heat + ledger.work + ledger.error, atol=1e-13)
    assert abs(ledger.heat[-1]) > 0.01
    assert abs(ledger.work[-1]) > 0.01
    assert np.array_equal(ledger.steps, np.arange(61))


def test_the_error_of_the_integrator_is_of_second_order():
    """Without a bath, heat is zero and what is left of ΔH after the work falls with h²."""
    errors = []
    for n in (40, 80, 160):
        scheme = bm.Langevin(dragged(), T, 0.0)
        start = scheme.start(jnp.array([0.3]), velocity=jnp.array([0.5]), ledger=True)
        ledger = bm.trajectory(scheme, start, step=2.0 / n, steps=n, seed=2).final.ledger
        assert float(ledger.heat) == 0
        errors.append(abs(float(ledger.error)))
    slope = np.polyfit(np.log([40, 80, 160]), np.log(errors), 1)[0]
    assert abs(slope + 2) < 0.3, errors


def test_work_of_forces_and_noises():
    """With a force and stochastic potentials the error falls with the step too: their work is booked, not called an error."""
    system = bm.mechanical(
        bm.Euclidean(2),
        potential=lambda q: jnp.cos(q[0]),
        force=lambda q, v: jnp.array([-q[1], q[0]]),
        noise=lambda q: jnp.array([jnp.sin(q[0] + q[1])]),
    )
    fine = np.asarray(evaluate(lambda path: path.increments(0, 160, 1, 1 / 160), bm.Wiener(3)))
    errors = []
    for n in (10, 40, 160):
        scheme = bm.Langevin(system, T, 0.0)
        state = scheme.start(jnp.array([0.3, 0.2]), velocity=jnp.array([0.5, -0.4]), ledger=True)
        path = bm.Recorded(np.pad(fine.reshape(n, 160 // n, 1).sum(1), ((0, 160 - n), (0, 0))))  # all of one length, for one program
        final = bm.trajectory(scheme, state, step=1 / n, steps=n, every=n, path=path).final
        errors.append(abs(float(final.ledger.error)))
        assert abs(float(final.ledger.work)) > 10 * errors[-1]
    assert errors[2] < errors[0] / 4, errors


def test_jarzynski():
    """⟨e^{−W/kT}⟩ = 1 for a trap dragged at finite speed from equilibrium, within 4 standard errors (probability of a false alarm 6e−5)."""
    system = dragged()
    scheme = bm.Langevin(system, T, 0.8, bm.Metropolised())
    still = bm.Langevin(bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * q[0] ** 2 + 0.1 * q[0] ** 4), T, 0.8, bm.Metropolised())
    settled = bm.simulate(still, still.start(jnp.zeros(1), temperature=T), step=0.2, steps=100, trajectories=20_000, seed=1).final
    start = scheme.start(settled.q, momentum=settled.p, ledger=True)
    final = bm.simulate(scheme, start, step=0.02, steps=100, trajectories=20_000, seed=2).final
    work = np.asarray(final.ledger.work)
    weight = np.exp(-work / T)
    assert work.mean() > 0.2  # irreversible: the second law is visible
    assert abs(weight.mean() - 1) < 4 * weight.std() / np.sqrt(len(weight))


def test_annealing():
    """A free particle forgets at the rate γ while kT falls: ⟨p²⟩ follows its exact recursion, within 4 standard errors."""
    gamma, h, steps = 0.7, 0.1, 40
    kT = lambda t: 2.0 * np.exp(-0.5 * t)
    scheme = bm.Langevin(bm.mechanical(bm.Euclidean(1)), lambda t: 2.0 * jnp.exp(-0.5 * t), gamma, schedule=lambda t: 1 + t)
    start = scheme.start(jnp.zeros(1), temperature=0.5)
    result = bm.simulate(scheme, start, step=h, steps=steps, trajectories=50_000, every=steps, seed=9, observe={"p2": lambda s: s.p[0] ** 2})
    variance = 0.5
    for k in range(steps):
        middle = (k + 0.5) * h
        c2 = np.exp(-2 * gamma * (1 + middle) * h)
        variance = c2 * variance + kT(middle) * (1 - c2)
    assert abs(float(result["p2"].mean[-1]) - variance) < 4 * float(result["p2"].stderr[-1])


def test_a_changed_temperature_or_friction_compiles_nothing():
    system, observe = separable(), {"E": bm.energy}

    def run(kT, rate):
        scheme = bm.Langevin(system, kT, rate=rate)
        return bm.simulate(scheme, scheme.start(jnp.zeros(3), temperature=kT), step=0.05, steps=4, trajectories=8, seed=1, observe=observe)

    first = run(0.5, 1.0)
    compiled = compilations()
    other = run(0.9, 2.0)
    assert compilations() == compiled
    assert float(first.E.mean[-1]) != float(other.E.mean[-1])


def _push(q0, q1, h, dW):
    return 0.1 * h * jnp.array([q0[1] + q1[1], 0.0])


def _discrete(system, more=lambda q0, q1, t: 0.0, **forces) -> bm.Discrete:
    """The trapezoid action of free motion and something more."""
    return bm.Discrete(system.space, lambda q0, q1, h, dW, t: (q1 - q0) @ (q1 - q0) / (2 * h) + more(q0, q1, t), system=system, **forces)


def test_refusals():
    plain = bm.mechanical(bm.Euclidean(2), potential=lambda q: q @ q)
    with pytest.raises(bm.mechanics.system.BismutError, match="finite kT ≥ 0"):
        bm.Langevin(plain, -1.0, 1.0)
    with pytest.raises(ValueError, match="positive semidefinite"):
        bm.Langevin(plain, 1.0, np.array([[1.0, 2.0], [2.0, 1.0]]))
    with pytest.raises(ValueError, match="positive or zero"):
        bm.Langevin(plain, 1.0, -0.5)
    relativistic = bm.System(bm.Euclidean(1), lambda q, v: -jnp.sqrt(1 - v @ v))
    with pytest.raises(ValueError, match="quadratic in the momentum"):
        bm.Langevin(relativistic, 1.0, 1.0)
    with pytest.raises(ValueError, match="quadratic in the momentum"):
        bm.thermalize(bm.System(bm.Euclidean(1), lambda q, v: -jnp.sqrt(1 - v @ v), lambda q: q), 1.0)
    with pytest.raises(ValueError, match="no stochastic potentials"):
        bm.Langevin(plain, 1.0)
    with pytest.raises(ValueError, match="not both"):
        bm.Langevin(plain, 1.0, 1.0, rate=1.0)
    with pytest.raises(ValueError, match="2 rows"):
        bm.Langevin(plain, 1.0, lambda q: jnp.ones((3, 1)))
    with pytest.raises(ValueError, match="already has its own dissipation"):
        bm.Langevin(bm.thermalize(separable(), 1.0), 1.0, 1.0)
    with pytest.raises(ValueError, match="its own reverse"):
        bm.Langevin(plain, 1.0, 1.0, bm.Metropolised(bm.VariationalEuler))
    with pytest.raises(ValueError, match="a force that is not −dU"):
        bm.Langevin(plain, 1.0, 1.0, bm.Metropolised(lambda system: _discrete(system, forces=(_push, _push))))
    with pytest.raises(ValueError, match=r"at a fixed time.*t = 0\.7"):
        bm.Langevin(plain, 1.0, 1.0, bm.Metropolised(lambda system: _discrete(system, lambda q0, q1, t: t * q0[0] * (q1[1] - q0[1]))))
    with pytest.raises(ValueError, match="depends on the velocity"):
        bm.Langevin(bm.mechanical(bm.Euclidean(2), force=lambda q, v: -v), 1.0, 1.0)
    with pytest.raises(ValueError, match="no friction balances"):
        bm.Langevin(separable(), 1.0, 1.0, bm.Metropolised())
    scheme = bm.Langevin(plain, 1.0, 1.0)
    with pytest.raises(ValueError, match="ledger=True"):
        bm.simulate(scheme, scheme.start(jnp.zeros(2), temperature=1.0), step=0.1, steps=1, observe={"Q": bm.heat})
    with pytest.raises(ValueError, match="written with shape"):
        bm.Langevin(bm.mechanical(bm.Euclidean(2) ** 3), 1.0, np.ones(3))


@pytest.mark.parametrize("splitting", [bm.BAOAB, slow(bm.ABOBA), slow(bm.OBABO), bm.GLA(bm.Verlet)], ids=str)
def test_a_noise_that_exerts_no_force_does_no_work(splitting):
    """γ = 2t + f(q): only f does work; of γ = 2t all of work, heat and error are exactly 0."""

    def books(noise, **parameters):
        system = bm.mechanical(bm.Euclidean(1), noise=noise, parameters=parameters or None)
        scheme = bm.Langevin(system, T, 0.0, splitting)
        start = scheme.start(jnp.array([0.3]), velocity=jnp.array([0.5]), ledger=True)
        return bm.trajectory(scheme, start, step=0.1, steps=20, seed=4).final.ledger

    still = books(lambda q, t: jnp.array([2 * t]))
    assert (float(still.work), float(still.heat), float(still.error)) == (0.0, 0.0, 0.0)
    plain, timed = (books(lambda q, t, parameters: 2 * jnp.sin(q) + parameters["rate"] * t, rate=rate) for rate in (0.0, 2.0))
    assert abs(float(plain.work)) > 0.1
    np.testing.assert_allclose(timed.work, plain.work, atol=1e-13)
    np.testing.assert_allclose(timed.error, plain.error, atol=1e-13)


@pytest.mark.parametrize("h", [0.25, 0.5])
def test_work_of_a_metropolised_step(h):
    """⟨e^{−W/kT}⟩ = √(1/4) for a spring that stiffens from 1 to 4, at any step, within 4 standard errors of 0.13 % (false alarms 6e−5).

    Moves are made at frozen time, so the work is that of the clock at the new point. By the trapezoidal rule it was .488 and .473.
    """
    spring = bm.mechanical(bm.Euclidean(1), potential=lambda q, t: 0.5 * (1 + 3 * t) * q @ q)
    scheme = bm.Langevin(spring, 1.0, 1.0, bm.Metropolised())
    rng = np.random.default_rng(3)
    starts = scheme.start(rng.normal(size=(60_000, 1)), momentum=rng.normal(size=(60_000, 1)), ledger=True)
    final = bm.simulate(scheme, starts, step=h, steps=round(1 / h), trajectories=60_000, seed=3).final
    weight = np.exp(-np.asarray(final.ledger.work))
    error = weight.std() / np.sqrt(len(weight))
    assert error < 0.0015
    assert abs(weight.mean() - 0.5) < 4 * error
