"""Cases that look easy and are not: step functions, rest in a stiff well, terms linear in the velocity, spaces that are no groups."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.flows import VariationalFlow, flow
from tests.flows.catalogue import once


def test_a_step_function_of_the_velocity_is_not_linear():
    """Dry friction F = −½ sign(v): its derivative is zero and it is not constant, so the shortcut for linear equations must not be taken."""
    scheme = bm.Midpoint(bm.mechanical(bm.Euclidean(1), force=lambda q, v: -0.5 * jnp.sign(v)))
    assert not VariationalFlow(scheme).structure().linear
    new, solve = once(lambda z: flow(scheme).advance(z, 0.1, jnp.zeros(0), 0.0))(bm.State(jnp.zeros(1), jnp.ones(1)))
    assert bool(solve.converged)
    assert float(new.p[0]) == pytest.approx(0.95, abs=1e-14)


@pytest.mark.parametrize("scheme", [bm.VariationalEuler, bm.Verlet])
@pytest.mark.parametrize("space", [bm.Circle(), bm.Torus(2)], ids=str)
def test_wrapped_angles_leave_an_explicit_step_explicit(scheme, space):
    """Wrapping is a step function of the velocity, but the equation of the step never sees the wrapped angle."""
    system = bm.mechanical(space, potential=lambda q: -jnp.sum(jnp.cos(q)), noise=lambda q: jnp.sum(jnp.sin(q))[None])
    assert VariationalFlow(scheme(system)).structure().linear


def test_rest_in_a_stiff_well_is_solved():
    """At rest all that is left of the equation is round-off, which is no failure."""
    scheme = bm.Midpoint(bm.mechanical(bm.Euclidean(1), potential=lambda q: 2500.0 * jnp.sum((q**2 - 2) ** 2)))
    start = scheme.start(jnp.array([2**0.5]), velocity=jnp.zeros(1))
    run = bm.trajectory(scheme, start, step=0.1, steps=200)
    assert run.outcome.ok
    assert float(jnp.abs(run.q - 2**0.5).max()) < 1e-13
    assert int(run.solve.iterations.max()) <= 5


def test_temperature_of_a_charged_particle():
    """L = ½v² + 5(q₀v₁ − q₁v₀): p = v + A(q). Maxwell momenta scatter about A, and the temperature is that of v.

    4000 draws, two degrees of freedom: 4.5 standard errors are 7 %, false-alarm rate 1e−5.
    """
    system = bm.System(bm.Euclidean(2), lambda q, v: 0.5 * v @ v + 5 * (q[0] * v[1] - q[1] * v[0]))
    scheme = bm.VariationalEuler(system)
    start = scheme.start(jnp.ones(2), temperature=1.0)
    result = bm.simulate(scheme, start, step=1e-9, steps=1, trajectories=4000, observe={"T": bm.temperature})
    v = np.asarray(result.final.p) - np.array([-5.0, 5.0])
    assert float(result["T"].mean[0]) == pytest.approx(np.mean(v**2), rel=1e-6)
    assert float(result["T"].mean[0]) == pytest.approx(1.0, abs=0.07)


def test_unsolved_step_of_a_trajectory_is_an_outcome():
    scheme = bm.Midpoint(bm.mechanical(bm.Euclidean(1), potential=lambda q: -jnp.sum(q**3) / 3))
    run = bm.trajectory(scheme, scheme.start(jnp.ones(1), momentum=jnp.ones(1)), step=2.0, steps=4)
    assert not run.outcome.ok
    assert run.outcome.failures[0].step == 0
    assert np.isnan(np.asarray(run.q[1:])).all()


def test_velocity_without_a_solution_is_not_a_number():
    """L = √(1 + v²) has |∂L/∂v| < 1."""
    system = bm.System(bm.Euclidean(1), lambda q, v: jnp.sqrt(1 + v @ v))
    velocity = lambda p: np.asarray(once(system.velocity)(jnp.zeros(1), jnp.array([p])))
    assert np.isnan(velocity(2.0)).all()
    assert velocity(0.6)[0] == pytest.approx(0.75)


def test_lists_are_points_too():
    scheme = bm.VariationalEuler(bm.mechanical(bm.Euclidean(2)))
    start = scheme.start([0.3, 0.2], velocity=[1.0, 2.0])
    assert start.q.shape == start.p.shape == (2,)


@dataclass(frozen=True)
class HalfPlane(bm.Space):
    """(x, y), y > 0, with velocities measured in units of y: a frame that does not commute, and no closed forms at all."""

    def origin(self, dtype=float):
        return jnp.array([0.0, 1.0], dtype)

    def zero(self, dtype=float):
        return jnp.zeros(2, dtype)

    def move(self, q, velocity, time=1.0):
        return jnp.stack([q[0] + time * velocity[0] * q[1], q[1] * jnp.exp(time * velocity[1])])

    def subtract(self, q1, q0):
        return jnp.stack([(q1[0] - q0[0]) / q0[1], jnp.log(q1[1] / q0[1])])


@pytest.mark.parametrize("space", [HalfPlane(), pytest.param(HalfPlane() * bm.SO3(), marks=pytest.mark.slow)], ids=["alone", "in a product"])
def test_a_space_of_two_verbs_is_enough(space):
    """Geodesics of the half plane from move and subtract alone: symplectic, and of first order to the limit that RK4 finds."""
    system = bm.System(space, lambda q, v: 0.5 * sum(jnp.sum(w * w) for w in jax.tree.leaves(v)))
    scheme = bm.VariationalEuler(system)
    draw = lambda: space.unflatten(0.5 * jax.random.normal(jax.random.key(2), (space.dim,)))
    q, p = once(lambda: (space.random(jax.random.key(1)), draw()))()
    start = scheme.start(q, momentum=p)
    report = bm.verify(scheme, start, step=0.05)
    assert report.ok, report
    assert report["order"].measured == pytest.approx(1.0, abs=0.15)
