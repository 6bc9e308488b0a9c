"""The free rigid body's map is symplectic in (g, m), m = (dτ⁻¹_{−hξ})*μ, and not in (g, μ), μ = ∂l/∂ξ at the step's velocity (THEORY 6.3)."""

import jax.numpy as jnp
import numpy as np

import bismut as bm
from bismut.findings import symplectic_defect
from bismut.flows import Flow, flow
from bismut.mechanics import Claims
from tests.flows.catalogue import once

STEP, INERTIA = 0.2, (1.0, 2.0, 3.3)
STATE = bm.State(jnp.eye(3), jnp.array([0.5, 2.0, -2.3]))


class InVelocities(Flow):
    """The same scheme as a map of (g, μ): m is found from μ, the step is done, and μ1 = I ξ is read off the step's velocity."""

    claims = Claims(order=1)

    def advance(self, state, h, dW, t):
        space = self.space
        m = space.dtau_inv_adjoint(-h * self.system.velocity(state.q, state.p), state.p)
        new, solve = flow(bm.VariationalEuler(self.system)).advance(bm.State(state.q, m), h, dW, t)
        return bm.State(new.q, self.system.momentum(new.q, space.subtract(new.q, state.q) / h)), solve


def body() -> bm.System:
    return bm.mechanical(bm.SO3(), mass=INERTIA)


def defect(scheme) -> float:
    return float(once(lambda z: symplectic_defect(scheme, z, STEP, jnp.zeros(0)))(STATE))


def test_the_map_is_symplectic_in_the_canonical_momentum():
    assert defect(bm.VariationalEuler(body())) < 1e-11


def test_it_is_not_in_the_momentum_of_the_steps_velocity():
    assert defect(InVelocities(body())) > 1e-2


def test_both_are_one_map_in_two_coordinates():
    """m1 = (dτ⁻¹_{−hξ})*μ1: the new state of one carries over to the other, so only the coordinate is at fault."""
    system = body()
    canonical = once(lambda z: system.space.dtau_inv_adjoint(-STEP * system.velocity(z.q, z.p), z.p))
    m0 = canonical(STATE)
    in_m = once(lambda m: flow(bm.VariationalEuler(system)).advance(bm.State(STATE.q, m), STEP, jnp.zeros(0), 0.0)[0])(m0)
    in_mu = once(lambda z: InVelocities(system).advance(z, STEP, jnp.zeros(0), 0.0)[0])(STATE)
    m1 = canonical(in_mu)
    np.testing.assert_allclose(in_m.q, in_mu.q, rtol=0, atol=1e-14)
    np.testing.assert_allclose(in_m.p, m1, rtol=0, atol=1e-14 / STEP)
    assert np.abs(in_m.p - in_mu.p).max() > 0.01


def test_the_canonical_momentum_makes_the_free_body_second_order():
    """Started from m0 = I ξ0 the error falls by 4 when the step is halved; started from μ0 = I ξ0, as printed, by 2."""
    system, time = body(), 2.0
    exact = final(bm.RungeKutta4(system), time, 2048)
    ratios = []
    for scheme in (bm.VariationalEuler(system), InVelocities(system)):
        errors = [np.abs(final(scheme, time, n).q - exact.q).max() for n in (64, 128)]
        ratios.append(errors[0] / errors[1])
    np.testing.assert_allclose(ratios, [4, 2], rtol=0.1)


def final(scheme, time: float, steps: int) -> bm.State:
    return bm.trajectory(scheme, STATE, step=time / steps, steps=steps, every=steps).final
