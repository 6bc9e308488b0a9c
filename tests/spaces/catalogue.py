"""The spaces on which every law of this folder is tested, with random points and velocities of each.

A test is one sentence about a `space`; hypothesis draws a `seed` and a `size` for the velocities. Sizes reach down to 0, where schemes start
and series replace closed forms, and up to 1.7 per component, which keeps every angle below half a turn.
"""

from functools import cache

import jax
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bismut.spaces import SE2, SE3, SO2, SO3, Circle, Euclidean, Torus

RETRACTIONS = ("cayley", "exp")
MATRIX_GROUPS = [group(retraction) for group in (SO2, SO3, SE2, SE3) for retraction in RETRACTIONS]
SPACES = [Euclidean(3), Circle(), Torus(2), *MATRIX_GROUPS, Euclidean(3) * SO3(), SO3() ** 3, (Euclidean(3) * SO3("exp")) ** 2]

EPS = float(np.finfo(np.float64).eps)
SIZES = (0.0, 1e-9, 1e-3, 0.3, 1.7)

examples = settings(derandomize=True, database=None, deadline=None, max_examples=15, phases=(Phase.explicit, Phase.generate))
everywhere = pytest.mark.parametrize("space", SPACES, ids=str)
on_matrix_groups = pytest.mark.parametrize("space", MATRIX_GROUPS, ids=str)


def law(test):
    """A statement that holds on every space, for every seed and size."""
    return everywhere(_drawn(test))


def matrix_law(test):
    """A statement that holds on every matrix group."""
    return on_matrix_groups(_drawn(test))


def _drawn(test):
    return examples(given(seed=st.integers(0, 2**32 - 1), size=st.sampled_from(SIZES))(test))


class Verbs:
    """The verbs of a space, each compiled once and shared by all laws; `on(space).move` is `jax.jit(space.move)`.

    Laws are composed of compiled verbs, not compiled whole: a verb takes 0.1 s to compile, a law made of ten verbs takes seconds.
    """

    def __init__(self, space):
        self._space = space

    def __getattr__(self, verb):
        compiled = jax.jit(getattr(self._space, verb))
        setattr(self, verb, compiled)
        return compiled


@cache
def on(space):
    return Verbs(space)


@cache
def compiled(function, space):
    """function(space, ...) compiled once per space, for what is not a verb: derivatives."""
    return jax.jit(lambda *arguments: function(space, *arguments))


def points(space, seed, count=1):
    """Independent random points."""
    return [on(space).random(key) for key in jax.random.split(jax.random.key(seed), count)]


def velocities(space, seed, size=1.0, count=1):
    """Independent random velocities with components in [−size, size]."""
    source = np.random.default_rng(seed)
    shape = jax.eval_shape(space.zero)
    return [jax.tree.map(lambda leaf: size * source.uniform(-1, 1, leaf.shape), shape) for _ in range(count)]


def times(c, v):
    """c v."""
    return jax.tree.map(lambda leaf: c * np.asarray(leaf), v)


def plus(v, w):
    """v + w."""
    return jax.tree.map(lambda a, b: np.asarray(a) + np.asarray(b), v, w)


def paired(mu, v):
    """⟨μ, v⟩."""
    return sum(np.sum(np.asarray(a) * np.asarray(b)) for a, b in zip(jax.tree.leaves(mu), jax.tree.leaves(v), strict=True))


def largest(*trees):
    """The largest entry of any array of the trees."""
    return max(float(np.max(np.abs(leaf))) for leaf in jax.tree.leaves(trees))


def assert_close(a, b, condition=1.0):
    """a = b to 100 ε, relative to the largest entry or to 1, times the condition number of the problem."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    allowed = 100 * EPS * condition * (1 + largest(a, b))
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert np.shape(x) == np.shape(y)
        assert np.max(np.abs(np.asarray(x) - np.asarray(y))) <= allowed
