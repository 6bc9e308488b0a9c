"""On matrices the retractions are  exp X = Σ Xⁿ/n!  and  cay X = (1 − X/2)⁻¹(1 + X/2),  and  Ad_g X = g X g⁻¹,  [X, Y] = XY − YX."""

import jax
import numpy as np
import pytest
from scipy.linalg import expm

from bismut.programs.evaluation import evaluate
from bismut.spaces import SE2, SE3

from .catalogue import BATCH, assert_close, directions, largest, matrix_law, on, points, velocities


def algebra(space, x):
    """The matrices of velocities, written out independently of the library."""
    x = np.reshape(x, (len(x), -1)).T
    o = 0 * x[0]
    if space.dim == 1:
        rows = [[o, -x[0]], [x[0], o]]
    elif isinstance(space, SE2):
        rows = [[o, -x[0], x[1]], [x[0], o, x[2]], [o, o, o]]
    else:
        rows = [[o, -x[2], x[1]], [x[2], o, -x[0]], [-x[1], x[0], o]]
    if space.dim == 6:
        rows = [[*row, v] for row, v in zip(rows, x[3:], strict=True)] + [[o, o, o, o]]
    return np.moveaxis(np.array(rows), -1, 0)


def matrices(g):
    """Rotations as they are, rigid motions as homogeneous matrices."""
    if not isinstance(g, tuple):
        return np.asarray(g)
    R, x = map(np.asarray, g)
    bottom = np.broadcast_to(np.eye(x.shape[1] + 1)[-1:], (len(x), 1, x.shape[1] + 1))
    return np.concatenate([np.concatenate([R, x[..., None]], axis=2), bottom], axis=1)


@matrix_law
def test_tau_is_the_matrix_function(space, seed):
    (x,) = velocities(space, seed)
    X = algebra(space, x)
    one = np.eye(X.shape[-1])
    exact = expm(X) if space.retraction == "exp" else np.linalg.solve(one - X / 2, one + X / 2)
    assert_close(matrices(on(space).tau(x)), exact)


@matrix_law
def test_ad_and_bracket_are_those_of_matrices(space, seed):
    (g,), (x, y) = points(space, seed), directions(space, seed, count=2)
    G, X, Y = matrices(g), algebra(space, x), algebra(space, y)
    assert_close(algebra(space, on(space).Ad(g, x)), G @ X @ np.linalg.inv(G), condition=1 + largest(G))
    assert_close(algebra(space, on(space).bracket(x, y)), X @ Y - Y @ X)


@matrix_law
def test_dtau_inv_is_that_of_matrices(space, seed):
    """dcay⁻¹_x y = (1 − X/2) Y (1 + X/2);   dexp_x = ∫₀¹ e^{s ad_x} ds is the corner block of exp [[ad_x, 1], [0, 0]]."""
    (x,), (y,) = velocities(space, seed), directions(space, seed)
    X, Y = algebra(space, x), algebra(space, y)
    z = on(space).dtau_inv(x, y)
    if space.retraction == "cayley":
        one = np.eye(X.shape[-1])
        assert_close(algebra(space, z), (one - X / 2) @ Y @ (one + X / 2), condition=1 + largest(x) ** 2)
        return
    n = space.dim
    units = [np.broadcast_to(np.reshape(e, x.shape[1:]), x.shape) for e in np.eye(n)]
    ad = np.stack([np.reshape(on(space).bracket(x, e), (BATCH, n)) for e in units], axis=-1)
    block = np.zeros((BATCH, 2 * n, 2 * n))
    block[:, :n, :n], block[:, :n, n:] = ad, np.eye(n)
    dexp = expm(block)[:, :n, n:]
    assert_close(np.reshape(dexp @ np.reshape(z, (BATCH, n, 1)), y.shape), y, condition=1 + largest(x) ** 2)


@pytest.mark.parametrize("space", [SE2(), SE3()], ids=str)
def test_homogeneous_matrices(space):
    (g,) = points(space, 11)
    assert_close(evaluate(jax.vmap(space.matrix), g), matrices(g))
    assert_close(evaluate(jax.vmap(space.from_matrix), matrices(g)), g)
