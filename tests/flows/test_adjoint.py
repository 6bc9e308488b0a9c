"""The adjoint undoes:  φ*_{−h, −ΔW} ∘ φ_{h, ΔW} = 1.  Which schemes are their own adjoint is measured, not declared."""

import functools

import jax
import jax.numpy as jnp
import pytest

import bismut as bm
from bismut.errors import BismutError
from tests.flows.catalogue import Traced, apart, increments, once, scheme, system
from tests.systems import random_state

STEP = 0.1


@functools.cache
def step_of(action: bm.Action):
    flow = Traced(action.system, action)
    return once(lambda z, h, w: flow.advance(z, h, w, 0.0)[0])


def step(action: bm.Action, state: bm.State, sign: int = 1) -> bm.State:
    return step_of(action)(state, jnp.asarray(sign * STEP), sign * increments(action.system, STEP)[0])


def undone(action: bm.Action, by: bm.Action) -> float:
    """How far from its start a state is after a step, and a step back with another scheme."""
    start = random_state(action.system, 6)
    return apart(action.space, step(by, step(action, start), -1), start)


CASES = [
    ("plane", "euler left"),
    ("plane", "midpoint"),
    ("heavy_top", "euler left"),
    ("heavy_top", "verlet"),
    ("heavy_top", "midpoint"),
    ("plane", "discrete"),
]


@pytest.mark.parametrize(("space", "name"), CASES)
def test_the_adjoint_undoes_a_step(space, name):
    action = scheme(space, name)
    assert undone(action, action.adjoint()) < 1e-12


@pytest.mark.parametrize(("space", "name"), [("plane", "euler left"), ("heavy_top", "midpoint")])
def test_the_adjoint_of_the_adjoint_is_the_scheme(space, name):
    action = scheme(space, name)
    assert action.adjoint().adjoint() is action


@pytest.mark.parametrize(
    ("space", "name"),
    [("plane", "midpoint"), ("plane", "verlet"), ("heavy_top", "verlet"), pytest.param("heavy_top", "midpoint exp", marks=pytest.mark.slow)],
)
def test_some_are_their_own_adjoint(space, name):
    """Verlet with either retraction, because only the ends are looked at; midpoint where the curve of the retraction is a group orbit."""
    action = scheme(space, name)
    assert undone(action, action) < 1e-12


@pytest.mark.parametrize(("space", "name"), [("heavy_top", "midpoint"), ("plane", "euler left")])
def test_others_are_not(space, name):
    """The middle of a Cayley curve is not the same point seen from the other end."""
    action = scheme(space, name)
    assert undone(action, action) > 1e-6


@pytest.mark.parametrize("space", ["plane", "heavy_top"])
def test_the_right_end_is_the_adjoint_of_the_left_end(space):
    start = random_state(system(space), 6)
    right, adjoint = scheme(space, "euler right"), scheme(space, "euler left").adjoint()
    assert apart(right.space, step(right, start), step(adjoint, start)) < 1e-12


def test_time_runs_backwards_too():
    """A driven system: the adjoint looks at the clock from the other end."""
    driven = bm.System(bm.Euclidean(1), lambda q, v, t: 0.5 * v[0] ** 2 - q[0] ** 4 * jnp.cos(3 * t), lambda q, t: jnp.array([q[0] * t]))
    action = bm.VariationalEuler(driven)
    start, dW, t = random_state(driven, 6), increments(driven, STEP)[0], jnp.asarray(0.4)

    def there_and_back(state):
        there = Traced(driven, action).advance(state, STEP, dW, t)[0]
        return Traced(driven, action.adjoint()).advance(there, -STEP, -dW, t + STEP)[0]

    assert apart(driven.space, once(there_and_back)(start), start) < 1e-13


def drag(q, v):
    return jax.tree.map(lambda leaf: -0.7 * leaf, v)


def forced(make) -> bm.Action:
    potential, noise = (lambda q: jnp.cos(q[0] - 2 * q[1])), (lambda q: jnp.array([q[0] * q[1]]))
    return make(bm.mechanical(bm.Euclidean(2), mass=[1.0, 2.0], potential=potential, noise=noise, force=drag))


@pytest.mark.parametrize("make", [bm.Midpoint, bm.Verlet])
def test_the_adjoint_undoes_a_step_with_a_force(make):
    action = forced(make)
    assert undone(action, action.adjoint()) < 1e-12


def test_an_explicit_force_has_no_adjoint_here():
    """It sees the velocity at the start of the step; undoing it would need the one at the end."""
    with pytest.raises(BismutError, match=r"velocity at the start.*Midpoint or Verlet"):
        forced(bm.VariationalEuler).adjoint()
