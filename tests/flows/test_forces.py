"""Forces as impulses of their virtual work:  p0 = −D₁S_d − f⁻,  p1 = D₂S_d + f⁺,  where f comes from F at the places the action looks at."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.findings.structure import volume_factor
from bismut.flows import flow
from tests.flows.catalogue import increments, once
from tests.systems import random_state

DRAG, STIFFNESS, TIME = 0.4, 2.0, 2.0


def damped() -> bm.System:
    """q̈ = −k q − c q̇."""
    return bm.mechanical(bm.Euclidean(1), potential=lambda q: 0.5 * STIFFNESS * q[0] ** 2, force=lambda q, v: -DRAG * v)


def exact(q: float, v: float, t: float) -> np.ndarray:
    """The solution q = e^{−ct/2}(a cos ωt + b sin ωt), ω² = k − c²/4."""
    w = np.sqrt(STIFFNESS - DRAG**2 / 4)
    b = (v + DRAG * q / 2) / w
    position = q * np.cos(w * t) + b * np.sin(w * t)
    rate = -w * q * np.sin(w * t) + w * b * np.cos(w * t)
    return np.exp(-DRAG * t / 2) * np.array([position, rate - DRAG / 2 * position])


def errors(scheme: bm.Action, levels: tuple[int, ...]) -> np.ndarray:
    start = bm.State(jnp.array([1.0]), jnp.array([0.5]))

    def final(h, steps):
        return jax.lax.fori_loop(0, steps, lambda k, z: flow(scheme).advance(z, h, jnp.zeros(0), h * k)[0], start)

    run = once(final)
    found = [run(TIME / n, n) for n in levels]
    return np.array([np.abs(np.concatenate([z.q, z.p]) - exact(1.0, 0.5, TIME)).max() for z in found])


@pytest.mark.parametrize(("make", "order"), [(bm.Midpoint, 2), (bm.Verlet, 2), (bm.VariationalEuler, 1)])
def test_a_linear_drag_keeps_the_order_of_the_scheme(make, order):
    """Halving the step divides the error by 2^order, to 5 % at 64 to 256 steps: measured within 2 %."""
    found = errors(make(damped()), (64, 128, 256))
    np.testing.assert_allclose(found[:-1] / found[1:], 2**order, rtol=0.05)


@pytest.mark.parametrize("end", ["left", "right"])
def test_explicit_friction_multiplies_phase_volume_exactly(end):
    """Friction F = −γp, seen at the start of the step: det = (1 − hγ)^d, whatever potential and noise."""
    friction, h, mass = 0.7, 0.1, jnp.array([1.0, 2.0, 0.5])
    system = bm.mechanical(
        bm.Euclidean(3),
        mass=mass,
        potential=lambda q: jnp.cos(q[0] - 2 * q[1]) + q[0] * q[2],
        noise=lambda q: jnp.array([jnp.sin(q[0] * q[1]), q[2] ** 2]),
        force=lambda q, v: -friction * mass * v,
    )
    scheme = bm.VariationalEuler(system, end=end)
    factor = once(lambda z, w: volume_factor(scheme, z, h, w, 0.0))(random_state(system, 6), increments(system, h)[0])
    np.testing.assert_allclose(factor, (1 - h * friction) ** 3, rtol=1e-13)


def test_a_force_on_a_group_that_is_a_gradient_acts_like_a_potential():
    """F = −dU, given as a force, gives the very steps of the potential U, and of no other covector."""
    U = lambda R: 3.0 * R[2, 2] + 0.4 * R[2, 0]
    space, mass = bm.SO3(), [1.0, 2.0, 2.5]
    slope = lambda R, w: jax.grad(lambda e: -U(space.nudge(R, e)))(jnp.zeros(3))
    as_force, as_potential = bm.mechanical(space, mass=mass, force=slope), bm.mechanical(space, mass=mass, potential=U)
    state = random_state(as_force, 6)
    step = lambda system: once(lambda z: flow(bm.Verlet(system)).advance(z, 0.1, jnp.zeros(0), 0.0)[0])(state)
    a, b = step(as_force), step(as_potential)
    np.testing.assert_allclose(a.q, b.q, rtol=0, atol=1e-13)
    np.testing.assert_allclose(a.p, b.p, rtol=0, atol=1e-13)


def test_work_of_the_drag_is_the_energy_lost():
    """dE/dt = ⟨F, v⟩, to the order of the step: Verlet over 256 steps against the integral of −c v²."""
    scheme = bm.Verlet(damped())
    run = bm.trajectory(scheme, bm.State(jnp.array([1.0]), jnp.array([0.5])), step=TIME / 256, steps=256)
    energy = np.asarray(once(jax.vmap(scheme.system.energy))(run.states))
    rate = -DRAG * np.asarray(run.p)[:, 0] ** 2
    np.testing.assert_allclose(energy[-1] - energy[0], np.trapezoid(rate, np.asarray(run.times)), rtol=1e-4)
