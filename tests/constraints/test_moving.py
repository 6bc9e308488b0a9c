"""Surfaces g(q, t) = 0 that move: the motion stays on them, with G v + ∂g/∂t = 0, and the ledger holds the work that they do."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import bismut as bm
from bismut.errors import BismutError, DomainError
from bismut.findings import symplectic_defect
from bismut.mechanics.constraint import rate
from bismut.programs.evaluation import evaluate

RATE, LIFT, T = 3.0, 0.3, 2.0
START = np.array([0.6, -0.8])


def height(t):
    """Of the pivot."""
    return LIFT * jnp.sin(RATE * t)


def shaken() -> bm.System:
    """A pendulum in the plane, of length 1, whose pivot goes up and down; gusts blow from the side."""
    return bm.mechanical(
        bm.Euclidean(2),
        potential=lambda x: x[1],
        noise=lambda x: 0.2 * x[:1],
        constraint=lambda x, t: jnp.array([x[0] ** 2 + (x[1] - height(t)) ** 2 - 1.0]),
    )


@cache
def run(n: int, noise: bool = True) -> bm.Trajectory:
    """A whole trajectory of n steps up to T, with its books; always one Brownian path."""
    scheme = bm.Verlet(shaken())
    # Along with the pivot: v = (0, ḣ) satisfies G v + ∂g/∂t = 0.
    start = scheme.start(jnp.asarray(START), velocity=jnp.array([0.0, LIFT * RATE]), ledger=True)
    fine = np.sqrt(T / 256) * np.random.default_rng(2).normal(size=(256, 1)) * noise
    coarse = np.zeros((128, 1))  # one length, and so one program, for all runs
    coarse[:n] = fine.reshape(n, 256 // n, 1).sum(1)
    return bm.trajectory(scheme, start, step=T / n, steps=n, path=bm.Recorded(coarse))


def test_the_motion_stays_on_the_moving_surface():
    found, system = run(64), shaken()
    held = jax.vmap(lambda s, t: (system.constraint(s.q, t), rate(system, s.q, system.velocity(s.q, s.p), t)))
    off, leaving = evaluate(held, found.states, found.times)
    assert np.abs(off).max() < 1e-13
    assert np.abs(leaving).max() < 1e-12
    assert np.abs(system.constraint(np.asarray(found.q)[-1], 0.0)).max() > 0.01


def test_it_is_the_motion_of_the_angle():
    """Without noise, against θ̈ = −(1 + ḧ) sin θ with x = (sin θ, h − cos θ), h the height of the pivot, by SciPy: of second order, within 10 %."""
    bend = lambda t: -LIFT * RATE**2 * np.sin(RATE * t)
    theta = float(np.arctan2(START[0], -START[1]))
    exact = solve_ivp(lambda t, z: (z[1], -(1 + bend(t)) * np.sin(z[0])), (0.0, T), (theta, 0.0), rtol=1e-10, atol=1e-10).y[0, -1]
    error = []
    for n in (64, 128):
        end = np.asarray(run(n, noise=False).final.q)
        error.append(abs(np.arctan2(end[0], float(evaluate(height, T)) - end[1]) - exact))
    assert error[0] < 0.01
    assert error[0] / error[1] == pytest.approx(4.0, rel=0.1)


def test_the_ledger_holds_the_work_of_the_surface():
    """ΔH = work + error, and the error of the books falls as h² without noise, so that the work is what the pivot did: not what is left over."""
    found = {n: run(n, noise=False) for n in (64, 128)}
    energy = lambda r: evaluate(lambda a, b: shaken().energy(b) - shaken().energy(a), jax.tree.map(lambda leaf: leaf[0], r.states), r.final)
    for r in found.values():
        assert float(r.final.ledger.work + r.final.ledger.error) == pytest.approx(float(energy(r)), abs=1e-12)
        assert abs(float(r.final.ledger.work)) > 0.1
    coarse, fine = (abs(float(r.final.ledger.error)) for r in found.values())
    assert coarse < 0.01
    assert coarse / fine == pytest.approx(4.0, rel=0.25)


def test_steps_are_symplectic_from_surface_to_surface():
    scheme = bm.Verlet(shaken())
    start = scheme.start(jnp.asarray(START), velocity=jnp.array([0.0, LIFT * RATE]))
    assert float(evaluate(lambda z: symplectic_defect(scheme, z, 0.1, jnp.array([0.5]), 0.0), start)) < 1e-12


def test_the_start_is_checked_at_its_time():
    scheme = bm.Verlet(shaken())
    with pytest.raises(DomainError, match="leads off"):
        scheme.start(jnp.asarray(START), velocity=jnp.zeros(2))
    late = scheme.start(jnp.array([0.6, float(evaluate(height, 0.4)) - 0.8]), velocity=jnp.zeros(2), t=0.4, project=True)
    assert bm.trajectory(scheme, late, step=0.01, steps=5, t0=0.4).outcome.ok
    with pytest.raises(DomainError, match=r"was made for t = 0\.4"):
        bm.trajectory(scheme, late, step=0.01, steps=5)


def test_refusals():
    with pytest.raises(BismutError, match="constraint moves"):
        bm.Langevin(shaken(), temperature=1.0, friction=0.5)
    with pytest.raises(BismutError, match="surface at rest"):
        bm.Verlet(shaken()).start(jnp.asarray(START), temperature=1.0)
