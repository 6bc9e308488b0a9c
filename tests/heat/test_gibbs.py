"""Gibbs averages: Metropolised steps are unbiased however large, splittings err at the order they claim.

    pendulum, U = −a cos q:          ⟨cos⟩ = I₁(x)/I₀(x)
    dipole on SO(3), sphere:         ⟨cos⟩ = coth x − 1/x            x = a/kT

False-alarm rate of one comparison within 4 standard errors: 6e−5. Seeds are fixed.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ive

import bismut as bm

T = 0.8
slow = lambda *case: pytest.param(*case, marks=pytest.mark.slow)
langevin = lambda x: 1 / np.tanh(x) - 1 / x


def pendulum(x):
    system = bm.mechanical(bm.Circle(), potential=lambda q: -x * T * jnp.cos(q))
    return system, jnp.zeros(()), lambda s: jnp.cos(s.q), ive(1, x) / ive(0, x)


def dipole(x):
    system = bm.mechanical(bm.SO3(), mass=[1.0, 2.0, 2.5], potential=lambda R: -x * T * R[2, 2])
    return system, jnp.eye(3), lambda s: s.q[2, 2], langevin(x)


def sphere(x):
    system = bm.mechanical(bm.Euclidean(3), mass=1.3, potential=lambda q: -x * T * q[2], constraint=lambda q: jnp.array([q @ q - 1.0]))
    return system, jnp.array([0.0, 0.0, 1.0]), lambda s: s.q[2], langevin(x)


def average(scheme, point, cosine, *, step, steps, trajectories, extra=None, ledger=False):
    start = scheme.start(point, temperature=T, ledger=ledger)
    observe = {"cos": cosine, **(extra or {})}
    return bm.simulate(scheme, start, step=step, steps=steps, every=steps, trajectories=trajectories, seed=21, observe=observe)


@pytest.mark.parametrize(
    ("make", "x", "step", "steps", "trajectories"),
    [
        (pendulum, 1.0, 1.2, 40, 60_000),
        slow(pendulum, 5.0, 0.6, 60, 60_000),
        slow(dipole, 2.0, 0.9, 40, 20_000),
        (sphere, 2.0, 0.7, 40, 20_000),
    ],
    ids=["pendulum 1", "pendulum 5", "dipole", "sphere"],
)
def test_metropolised_steps_are_unbiased_at_a_large_step(make, x, step, steps, trajectories):
    system, point, cosine, exact = make(x)
    scheme = bm.Langevin(system, T, rate=1.0, splitting=bm.Metropolised())
    extra = {"T": bm.temperature, "acceptance": bm.acceptance}
    result = average(scheme, point, cosine, step=step, steps=steps, trajectories=trajectories, extra=extra, ledger=True)
    assert result.outcome.ok
    assert abs(float(result["cos"].mean[-1]) - exact) < 4 * float(result["cos"].stderr[-1])
    assert abs(float(result["T"].mean[-1]) - T) < 4 * float(result["T"].stderr[-1])
    accepted = float(result["acceptance"].mean[-1])
    assert 0.5 < accepted < 0.99  # steps are refused, so that exactness is not for nothing


@pytest.mark.parametrize("splitting", [bm.OBABO, slow(bm.ABOBA), slow(bm.GLA(bm.Verlet))], ids=str)
def test_splittings_err_at_second_order(splitting):
    """The bias of ⟨cos q⟩ for the pendulum at x = 2 against the step: slope 2 ± 0.4, from 600 000 independent trajectories per step."""
    system, point, cosine, exact = pendulum(2.0)
    scheme = bm.Langevin(system, T, 1.0, splitting)
    steps = np.array([0.6, 0.8, 1.0])
    errors = []
    for h in steps:
        result = average(scheme, point, cosine, step=h, steps=round(12 / h), trajectories=600_000)
        errors.append(float(result["cos"].mean[-1]) - exact)
        assert abs(errors[-1]) > 6 * float(result["cos"].stderr[-1])  # a bias that is really seen
    slope = np.polyfit(np.log(steps), np.log(np.abs(errors)), 1)[0]
    assert abs(slope - 2) < 0.4, (slope, errors)


@pytest.mark.parametrize("make", [slow(dipole), slow(sphere)])
def test_groups_and_constraints(make):
    """BAOAB at a moderate step: its bias is below what 40 000 trajectories see."""
    system, point, cosine, exact = make(2.0)
    result = average(bm.Langevin(system, T, rate=1.0), point, cosine, step=0.15, steps=60, trajectories=40_000, extra={"T": bm.temperature})
    assert abs(float(result["cos"].mean[-1]) - exact) < 4 * float(result["cos"].stderr[-1])
    assert abs(float(result["T"].mean[-1]) - T) < 4 * float(result["T"].stderr[-1])


def test_a_refused_step_turns_the_momentum_around():
    """Without friction and with a step beyond stability every refusal gives (q, −p) exactly."""
    stiff = bm.mechanical(bm.Euclidean(1), potential=lambda q: 50.0 * q @ q)
    scheme = bm.Langevin(stiff, 1.0, 0.0, bm.Metropolised())
    run = bm.trajectory(scheme, scheme.start(jnp.array([1.0]), velocity=jnp.array([0.3])), step=1.0, steps=20, seed=0)
    assert np.array_equal(np.asarray(run.q), np.ones((21, 1)))
    assert np.array_equal(np.asarray(run.p[:, 0]), 0.3 * (-1.0) ** np.arange(21))


def test_sliding_disk_with_a_bath_of_rank_one():
    """Noise and friction act on one combination of two velocities, and both momenta come to kT."""
    c, kT, sigma = 0.5, 0.5, 0.5
    disk = bm.mechanical(
        bm.Euclidean(2), mass=[1.0, sigma], potential=lambda q: 1 - jnp.cos(q[0]), noise=lambda q: jnp.sqrt(2 * c * kT) * (q[0] + q[1])[None]
    )
    scheme = bm.Langevin(disk, kT)
    start = scheme.start(jnp.zeros(2), temperature=0.5 * kT)  # half as hot
    observe = {"slide": lambda s: s.p[0] ** 2 / kT, "turn": lambda s: s.p[1] ** 2 / (sigma * kT)}
    result = bm.simulate(scheme, start, step=0.1, steps=1000, every=1000, trajectories=60_000, seed=5, observe=observe)
    for name in observe:
        assert abs(float(result[name].mean[-1]) - 1) < 4 * float(result[name].stderr[-1])
