"""A computed path makes the action stationary:  d𝔊 = 0 at every inner point,  and a path moved off it does not.

d𝔊 is a difference of two momenta, each recovered from points that are h apart, so round-off is ε |p|/h; the paths here have |p| ≤ 10² and
h = 0.05, so that ε |p|/h < 1e−12. Measured: at most 3e−13.
"""

import functools

import jax
import numpy as np
import pytest

from bismut.flows import action_differential, action_sum
from tests.flows.catalogue import everywhere, increments, once, path, scheme, system, traced
from tests.systems import random_state

STEP, STEPS = 0.05, 50
MOVED = 17  # an inner point


@functools.cache
def measured(space: str, name: str):
    """A computed path, its increments, and d𝔊 as a compiled function of paths."""
    action, dW = scheme(space, name), increments(system(space), STEP, STEPS, size=1.0)
    states, solved = once(lambda z: path(traced(space, name), z, STEP, dW))(random_state(system(space), 6, 0.5))
    assert solved
    return states, dW, once(lambda q: action_differential(action, q, STEP, dW))


def moved(space: str, name: str, e) -> object:
    """The computed path with one inner point moved by e, in the frame there."""
    Q = scheme(space, name).space
    states, _, _ = measured(space, name)
    here = once(lambda q, e: Q.move(q, Q.unflatten(e)))(jax.tree.map(lambda leaf: np.asarray(leaf)[MOVED], states.q), e)
    replaced = lambda leaf, new: np.concatenate([leaf[:MOVED], new[None], leaf[MOVED + 1 :]])
    return jax.tree.map(lambda leaf, new: replaced(np.asarray(leaf), np.asarray(new)), states.q, here)


@everywhere
def test_the_action_is_stationary_along_a_computed_path(space, name):
    states, _, differential = measured(space, name)
    assert all(np.abs(leaf).max() < 1e2 for leaf in jax.tree.leaves(states.p))
    slope = np.asarray(differential(states.q))
    assert slope.shape == (STEPS - 1, system(space).space.dim)
    assert np.abs(slope).max() <= 1e-11


@everywhere
def test_the_action_is_not_stationary_along_a_path_moved_off_it(space, name):
    """Moving one point by 0.01 changes three momenta: its own by 2·0.01·M/h and those of its neighbours by half as much."""
    _, _, differential = measured(space, name)
    slope = np.abs(np.asarray(differential(moved(space, name, np.full(system(space).space.dim, 0.01))))).max(1)
    assert (slope[MOVED - 2 : MOVED + 1] > 1e-3).all()
    assert np.delete(slope, range(MOVED - 2, MOVED + 1)).max() <= 1e-11


@pytest.mark.parametrize(
    ("space", "name"), [("plane", "midpoint"), ("heavy_top", "verlet"), ("heavy_top", "midpoint exp"), ("heavy_top", "discrete")]
)
def test_the_differential_is_the_gradient_of_the_action_sum(space, name):
    """d𝔊·δq = d/dε 𝔊(..., q_k ⊕ ε δq, ...) for variations that keep the ends, here along a path that is not a solution."""
    action, dW, k = scheme(space, name), increments(system(space), STEP, 6, size=1.0), 3
    Q, begin = action.space, random_state(system(space), 6).q
    scattered = 0.05 * np.random.default_rng(1).normal(size=(7, Q.dim))
    off = once(jax.vmap(lambda e: Q.move(begin, Q.unflatten(e))))(scattered)

    def sum_of(x):
        here = Q.move(jax.tree.map(lambda leaf: leaf[k], off), Q.unflatten(x))
        return action_sum(action, jax.tree.map(lambda leaf, new: leaf.at[k].set(new), off, here), STEP, dW)

    gradient, differential = once(lambda x: (jax.grad(sum_of)(x), action_differential(action, off, STEP, dW)))(np.zeros(Q.dim))
    assert np.abs(gradient).max() > 0.1
    np.testing.assert_allclose(gradient, np.asarray(differential)[k - 1], rtol=1e-11, atol=1e-12)
