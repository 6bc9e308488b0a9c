"""The spaces on which every law of this folder is tested, with random points and velocities of each.

A law is one sentence about a `space`, checked on a batch of BATCH random cases; hypothesis draws the `seed` of the batch. The sizes of
velocities reach down to 0, where schemes start and series replace closed forms, and up to 1.7 per component: below half a turn, where τ⁻¹ is unique.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bismut.programs.evaluation import evaluator
from bismut.spaces import SE2, SE3, SO2, SO3, Circle, Euclidean, Torus, scale

RETRACTIONS = ("cayley", "exp")
MATRIX_GROUPS = [group(retraction) for group in (SO2, SO3, SE2, SE3) for retraction in RETRACTIONS]
SPACES = [Euclidean(3), Circle(), Torus(2), *MATRIX_GROUPS, Euclidean(3) * SO3(), SO3() ** 3, (Euclidean(3) * SO3("exp")) ** 2]

EPS = float(np.finfo(np.float64).eps)
SIZES = np.array([0.0, 1e-9, 1e-3, 0.3, 1.7] * 4)
BATCH = len(SIZES)

everywhere = pytest.mark.parametrize("space", SPACES, ids=str)
on_matrix_groups = pytest.mark.parametrize("space", MATRIX_GROUPS, ids=str)


def law(test):
    """A statement that holds on every space, whatever the seed."""
    return everywhere(_drawn(test))


def matrix_law(test):
    """A statement that holds on every matrix group."""
    return on_matrix_groups(_drawn(test))


def _drawn(test):
    few = settings(derandomize=True, database=None, deadline=None, max_examples=2, phases=(Phase.explicit, Phase.generate))
    return few(given(seed=st.integers(0, 2**32 - 1))(test))


def batched(function):
    """function over a leading axis, traced once and carried out in NumPy: the laws are about formulas, and need no compiler."""
    return evaluator(jax.vmap(function))


GROUP_VERBS = ("multiply", "inverse", "Ad", "Ad_star", "bracket", "ad_star", "project", "random", "flatten", "unflatten")


class Verbs:
    """The verbs of a space over batches, each traced once and shared by all laws: `on(space).move` is `batched(space.move)`.

    The verbs of the group alone are traced for one retraction; `test_retraction` shows that they do not depend on it.
    """

    def __init__(self, space):
        self._space = space

    def __getattr__(self, verb):
        plain = self._space.using("cayley")
        shared = verb in GROUP_VERBS and plain != self._space
        made = getattr(on(plain), verb) if shared else batched(getattr(self._space, verb))
        setattr(self, verb, made)
        return made


@cache
def on(space):
    return Verbs(space)


@cache
def over(function, space):
    """function(space, ...) over batches, for what is not a verb: derivatives."""
    return batched(lambda *arguments: function(space, *arguments))


def carried(space, eta, g, zeta):
    """η g + g ζ, the velocity at s = 0 of the curve τ(sη) g τ(sζ); every τ begins with the identity as its slope."""
    return over(_carried, space.using("cayley"))(eta, g, zeta)


def _carried(space, eta, g, zeta):
    curve = lambda s: space.multiply(space.multiply(space.tau(scale(s, eta)), g), space.tau(scale(s, zeta)))
    return jax.jvp(curve, (0.0,), (1.0,))[1]


def velocities(space, seed, count=1, sizes=SIZES):
    """Independent batches of velocities, uniform in [−size, size] in every component."""
    source = np.random.default_rng(seed)

    def draw(leaf):
        return (source.uniform(-1, 1, (BATCH, *leaf.shape)).T * sizes).T

    return [jax.tree.map(draw, _shape(space)) for _ in range(count)]


@cache
def _shape(space):
    return jax.tree.map(np.asarray, space.zero())


def directions(space, seed, count=1):
    """Independent batches of velocities of size 1, for the arguments in which a law is linear."""
    return velocities(space, seed + 1, count, sizes=np.ones(BATCH))


def points(space, seed, count=1):
    """Independent batches of points; the product of two moves reaches every orientation."""
    x = velocities(space, seed + 2, 2 * count, sizes=np.full(BATCH, 1.7))
    return [on(space).multiply(on(space).tau(x[2 * n]), on(space).tau(x[2 * n + 1])) for n in range(count)]


def batch_of(point):
    """One point or velocity, BATCH times."""
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (BATCH, *leaf.shape)), point)


def times(c, v):
    """c v."""
    return jax.tree.map(lambda leaf: c * np.asarray(leaf), v)


def plus(v, w):
    """v + w."""
    return jax.tree.map(lambda a, b: np.asarray(a) + np.asarray(b), v, w)


def paired(mu, v):
    """⟨μ, v⟩, for each case of the batch."""
    return sum(np.sum(_rows(a) * _rows(b), axis=1) for a, b in zip(jax.tree.leaves(mu), jax.tree.leaves(v), strict=True))


def largest(*trees):
    """The largest entry, for each case of the batch."""
    return np.max([np.max(np.abs(_rows(leaf)), axis=1) for leaf in jax.tree.leaves(trees)], axis=0)


def _rows(leaf):
    return np.reshape(np.asarray(leaf), (BATCH, -1))  # NumPy leaves an array of JAX to JAX


def assert_close(a, b, condition=1.0):
    """a = b to 100 ε, relative to the largest entry or to 1, times the condition number of the problem, in every case of the batch."""
    assert jax.tree.structure(a) == jax.tree.structure(b)
    assert jax.tree.map(jnp.shape, a) == jax.tree.map(jnp.shape, b)
    difference = largest(plus(a, times(-1, b)))
    excess = difference / (100 * EPS * condition * (1 + largest(a, b)))
    worst = np.argmax(np.where(np.isnan(excess), np.inf, excess))
    assert excess[worst] <= 1, f"case {worst} with size {SIZES[worst]:g}: off by {difference[worst]:.2g}, {excess[worst]:.2g} times what is allowed"
