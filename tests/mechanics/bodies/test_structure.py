"""However many bodies act on each other, the step solves for one coordinate or one rotation at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.flows import VariationalFlow
from bismut.mechanics.newton import Cells
from bismut.programs.evaluation import evaluate
from tests.mechanics.bodies.gas import energies, gas, kicks, shapes, start

COUNT = 4


def everything(full: bool = False, own: bool = False) -> bm.System:
    """All energies and noises at once, with principal moments or with full inertia matrices, derivatives found or given."""
    body = shapes(COUNT)
    moment = (0.3, -0.2, 1.0)
    inside = bm.uniform_field((0.1, 0.2, 0.3), moment) + bm.gravity(body.mass) + bm.harmonic_trap(0.3) + bm.soft_box(5.0)
    pairs = bm.gay_berne(1.5, 2.0, 0.8) + bm.pair_potential(lambda a, b: (a.R[:, 0] @ b.R[:, 1]) / (1 + (b.x - a.x) @ (b.x - a.x)))
    weight = bm.with_forces(lambda x, R: jnp.sum(x * x), lambda x, R: (-2 * x, 0 * x))
    potential = energies(COUNT) + inside + pairs + weight if own else energies(COUNT) + inside + pairs
    noise = bm.translation_noise(0.1) + bm.orientation_noise((0.1, 0.2, 0.3)) + bm.pair_noise(kicks, np.ones(COUNT))
    return bm.rigid_bodies(mass=body.mass, inertia=body.inertia if full else body.moments, potential=potential, noise=noise)


@pytest.mark.parametrize("make", [bm.VariationalEuler, bm.Verlet, lambda system: bm.VariationalEuler(system, end="right")])
@pytest.mark.parametrize("case", [{}, {"full": True}, {"own": True}], ids=str)
def test_positions_are_explicit_and_rotations_are_solved_body_by_body(make, case):
    system = everything(**case)
    assert system.channels == COUNT * (3 + 9) + 3 * COUNT * (COUNT - 1) // 2
    found = VariationalFlow(make(system)).structure()
    assert found.cells == Cells(((3 * COUNT, 1), (COUNT, 3)))


def test_the_step_moves_positions_by_the_momentum_it_has():
    """Left-end variational Euler: x1 = x0 + h v with M v = p0 − h U_x + γ_x·ΔW, no equation to solve."""
    system = gas(COUNT)
    scheme, h = bm.VariationalEuler(system), 0.02
    state = start(scheme, COUNT)
    dW = 0.1 * jnp.asarray(np.random.default_rng(0).normal(size=system.channels))
    new, solve = evaluate(lambda state: VariationalFlow(scheme).advance(state, h, dW, 0.0), state)
    push = evaluate(jax.grad(lambda x: system.noise((x, state.q[1])) @ dW - h * system.potential((x, state.q[1]))), state.q[0])
    np.testing.assert_allclose(new.q[0], state.q[0] + h * (state.p[0] + push) / shapes(COUNT).mass[:, None], rtol=1e-12)
    assert solve.converged
    assert solve.residual < 1e-13
