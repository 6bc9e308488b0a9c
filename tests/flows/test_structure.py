"""What is read off an action about its equation is true: the residual p0 + D₁S_d + f⁻ of a step solved by a shortcut vanishes to round-off."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bismut as bm
from bismut.flows import VariationalFlow
from bismut.flows.legendre import explicit_velocities, momenta
from bismut.mechanics.newton import Cells
from tests.flows.catalogue import PLAIN, increments, once, scheme, system
from tests.systems import random_state

STEP = 0.1


def drag(q, v):
    return jax.tree.map(lambda leaf: -0.7 * leaf, v)


def structure(action: bm.Action):
    return VariationalFlow(action).structure()


@pytest.mark.parametrize("name", ["euler left", "euler right", "verlet"])
def test_a_separable_system_on_a_vector_space_is_explicit(name):
    found = structure(scheme("separable", name))
    assert found.linear
    assert found.cells == Cells(((3, 1),))
    assert "linear" in found.describe()


def test_a_potential_that_sees_the_unknown_couples_everything():
    found = structure(scheme("separable", "midpoint"))
    assert not found.linear
    assert found.cells == Cells(((1, 3),))


PER_BODY = Cells(((6, 1), (2, 3)))  # components of two positions, and two rotations


@pytest.mark.parametrize(
    ("name", "cells"), [("euler left", PER_BODY), ("euler right", PER_BODY), ("verlet", PER_BODY), ("midpoint", Cells(((1, 12),)))]
)
def test_bodies_are_solved_one_by_one_where_the_potential_is_explicit(name, cells):
    found = structure(scheme("bodies", name))
    assert found.cells == cells
    assert not found.linear


@pytest.mark.parametrize("name", PLAIN)
def test_a_lagrangian_that_couples_everything_has_no_shortcut(name):
    """T depends on q: at the left end through the force ∂T/∂q, quadratic in v, elsewhere through the place as well."""
    found = structure(scheme("plane", name))
    assert found.cells == Cells(((1, 2),))
    assert not found.linear


def forced(make, **kwargs) -> bm.Action:
    potential = lambda q: jnp.cos(q[0] - 2 * q[1]) + 0.1 * jnp.sum(q**4)
    return make(bm.mechanical(bm.Euclidean(2), mass=[1.0, 2.0], potential=potential, noise=lambda q: jnp.array([q[0] * q[1]]), force=drag), **kwargs)


def test_an_explicit_force_leaves_the_equation_explicit():
    found = structure(forced(bm.VariationalEuler))
    assert found.linear
    assert found.cells == Cells(((2, 1),))


def test_a_force_at_the_velocity_of_the_step_may_couple_everything():
    """Verlet looks at the force with the unknown velocity; nothing says that F(q, v) falls into cells."""
    assert structure(forced(bm.Verlet)).cells == Cells(((1, 2),))


SHORTCUTS = {f"{space} {name}": (lambda s=space, n=name: scheme(s, n)) for space in ("separable", "bodies") for name in ("euler left", "verlet")}
SHORTCUTS |= {"separable euler right": lambda: scheme("separable", "euler right"), "heavy top exp": lambda: scheme("heavy_top", "euler left exp")}
SHORTCUTS |= {"explicit drag": lambda: forced(bm.VariationalEuler), "drag at the right end": lambda: forced(bm.VariationalEuler, end="right")}
SHORTCUTS |= {"drag in verlet": lambda: forced(bm.Verlet), "full mass": lambda: bm.VariationalEuler(system("vehicle"))}


@pytest.mark.parametrize("case", SHORTCUTS)
def test_the_residual_of_a_step_vanishes(case):
    """Recomputed from the two ends alone, with v = (q1 ⊖ q0)/h; round-off is ε |p|/h. p1 is D₂S_d + f⁺ of the same ends."""
    action = SHORTCUTS[case]()
    space, state, dW = action.space, random_state(action.system, 6), increments(action.system, STEP)[0]
    before = explicit_velocities(action, state.q, state.p, dW, 0.0)

    def measure(state):
        new, solve = VariationalFlow(action).advance(state, STEP, dW, 0.0)
        v = jax.tree.map(lambda x: x / STEP, space.subtract(new.q, state.q))
        p0, p1 = momenta(action, state.q, new.q, v, STEP, dW, 0.0, before)
        flat = space.flatten
        return flat(p0) - flat(state.p), flat(p1) - flat(new.p), solve

    residual, after, solve = once(measure)(state)
    assert solve.converged
    assert solve.residual < 1e-13
    np.testing.assert_allclose(residual, 0, atol=1e-13)
    np.testing.assert_allclose(after, 0, atol=1e-13)
