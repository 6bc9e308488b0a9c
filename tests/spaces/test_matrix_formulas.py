"""On matrices the retractions are  exp X = Σ Xⁿ/n!  and  cay X = (1 − X/2)⁻¹(1 + X/2),  and  Ad_g X = g X g⁻¹,  [X, Y] = XY − YX."""

import numpy as np
import pytest
from scipy.linalg import expm

from bismut.spaces import SE2, SE3, SO2, SO3

from .catalogue import assert_close, largest, matrix_law, on, points, velocities


def algebra(space, x):
    """The matrix of a velocity, written out independently of the library."""
    x = np.atleast_1d(x)
    if space.dim == 1:
        return np.array([[0, -x[0]], [x[0], 0]])
    if isinstance(space, SE2):
        return np.array([[0, -x[0], x[1]], [x[0], 0, x[2]], [0, 0, 0]])
    w = np.array([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])
    return w if space.dim == 3 else np.block([[w, x[3:, None]], [np.zeros((1, 4))]])


def matrix(space, g):
    return g if isinstance(space, SO2 | SO3) else space.matrix(g)


@matrix_law
def test_tau_is_the_matrix_function(space, seed, size):
    (x,) = velocities(space, seed, size)
    X, one = algebra(space, x), np.eye(algebra(space, x).shape[0])
    exact = expm(X) if space.retraction == "exp" else np.linalg.solve(one - X / 2, one + X / 2)
    assert_close(matrix(space, on(space).tau(x)), exact)


@matrix_law
def test_ad_and_bracket_are_those_of_matrices(space, seed, size):
    (g,), (x, y) = points(space, seed), velocities(space, seed, size, count=2)
    G, Ad, bracket = np.asarray(matrix(space, g)), on(space).Ad(g, x), on(space).bracket(x, y)
    X, Y = algebra(space, x), algebra(space, y)
    assert_close(algebra(space, Ad), G @ X @ np.linalg.inv(G), condition=1 + largest(G))
    assert_close(algebra(space, bracket), X @ Y - Y @ X)


@matrix_law
def test_dtau_inv_is_that_of_matrices(space, seed, size):
    """dcay⁻¹_x y = (1 − X/2) Y (1 + X/2);   dexp_x = ∫₀¹ e^{s ad_x} ds is the corner block of exp [[ad_x, 1], [0, 0]]."""
    (x,), (y,) = velocities(space, seed, size), velocities(space, seed + 1)
    X, Y = algebra(space, x), algebra(space, y)
    one = np.eye(X.shape[0])
    z = on(space).dtau_inv(x, y)
    if space.retraction == "cayley":
        assert_close(algebra(space, z), (one - X / 2) @ Y @ (one + X / 2), condition=1 + largest(x) ** 2)
        return
    ad = np.stack([np.atleast_1d(on(space).bracket(x, np.reshape(e, np.shape(x)))) for e in np.eye(space.dim)], axis=-1)
    n = space.dim
    dexp = expm(np.block([[ad, np.eye(n)], [np.zeros((n, 2 * n))]]))[:n, n:]
    assert_close(np.reshape(dexp @ np.atleast_1d(z), np.shape(y)), y, condition=1 + largest(x) ** 2)


@pytest.mark.parametrize("space", [SE2(), SE3()], ids=str)
def test_homogeneous_matrices_multiply_as_motions_do(space):
    g, h = points(space, 11, 2)
    assert_close(space.from_matrix(space.matrix(g)), g)
    assert_close(space.matrix(on(space).multiply(g, h)), space.matrix(g) @ space.matrix(h))
