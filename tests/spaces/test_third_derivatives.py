"""τ and τ⁻¹ are right to the third derivative along any line, at 0, near 0, and up to half a turn.

    t ↦ τ(x + ty)        against exp and (1 − X/2)⁻¹(1 + X/2) of matrices in 50 digits
    t ↦ τ⁻¹(τ(x) exp(ty))   against quaternions in 50 digits
    t ↦ τ⁻¹(τ(x + ty)) = x + ty, so its second and third derivatives vanish
"""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from bismut.spaces import SE3, SO2, SO3

from .catalogue import RETRACTIONS, compiled
from .test_matrix_formulas import algebra, matrix

SIZES = [0.0, 1e-9, 1e-3, 1.0, 3.0, np.pi - 1e-6]
TOLERANCE = 1e-12  # measured: 2e-14

GROUPS = [group(retraction) for group in (SO2, SO3, SE3) for retraction in RETRACTIONS]  # SE2 calls the functions of SE3

on_groups = pytest.mark.parametrize("space", GROUPS, ids=str)
at_sizes = pytest.mark.parametrize("size", SIZES)


def line(space, size):
    """A point x with |w| = size in its rotational part, and a direction y of length 1."""
    source = np.random.default_rng(int(1e6 * size) + space.dim)
    x, y = source.normal(size=(2, *np.shape(space.zero())))
    turn = np.atleast_1d(x)[:3]
    return size * x / np.linalg.norm(turn), y / np.linalg.norm(y)


def jet(curve):
    """Value and three derivatives at t = 0. Each level returns (f, f′) of the one below."""

    def raised(f):
        return lambda t: jax.jvp(f, (t,), (1.0,))

    ((f, f1), (_, f2)), (_, (_, f3)) = raised(raised(raised(curve)))(0.0)
    return jnp.stack([f, f1, f2, f3])


def jet_of_tau(space, x, y):
    return jet(lambda t: matrix(space, space.tau(x + t * y)))


def jet_of_inverse(space, x, y):
    R = space.tau(x)
    return jet(lambda t: space.tau_inv(R @ SO3("exp").tau(t * y)))


def jet_of_both(space, x, y):
    return jet(lambda t: space.tau_inv(space.tau(x + t * y)))


def exact_jet(curve):
    """Derivatives of an array-valued function of t in 50 digits, by mpmath's differences of step 1e−20 and beyond."""
    with mp.workdps(50):
        shape = np.shape(curve(mp.mpf(0)))
        entries = [mp.diffs(lambda t, i=i: curve(t)[i], 0, 3) for i in np.ndindex(*shape)]
        return np.array([[float(d) for d in entry] for entry in entries]).T.reshape(4, *shape)


def exact_tau(space, X):
    X, one = mp.matrix(X), mp.eye(X.shape[0])
    tau = mp.expm(X) if space.retraction == "exp" else (one - X / 2) ** -1 * (one + X / 2)
    return np.array(tau.tolist())


def real(x):
    return np.vectorize(mp.mpf, otypes=[object])(x)


def exact_quaternion(x):
    angle = mp.sqrt(mp.fsum(x * x))
    return mp.cos(angle / 2), x * (mp.sin(angle / 2) / angle if angle else mp.mpf(1) / 2)


def assert_jets_agree(got, exact, condition=1.0):
    for order, (a, b) in enumerate(zip(got, exact, strict=True)):
        assert np.max(np.abs(a - b)) < TOLERANCE * condition * (1 + np.max(np.abs(b))), f"derivative {order}"


@on_groups
@at_sizes
def test_tau(space, size):
    x, y = line(space, size)
    X, Y = real(algebra(space, x)), real(algebra(space, y))
    assert_jets_agree(compiled(jet_of_tau, space)(x, y), exact_jet(lambda t: exact_tau(space, X + t * Y)))


@pytest.mark.parametrize("retraction", RETRACTIONS)
@at_sizes
def test_the_inverse_on_rotations(retraction, size):
    space = SO3(retraction)
    x, y = line(space, size)

    def curve(t):
        s, u = exact_quaternion(real(x)) if retraction == "exp" else (mp.mpf(1), real(x) / 2)
        c, v = exact_quaternion(t * real(y))
        scalar, vector = s * c - u @ v, s * v + c * u + np.cross(u, v)
        if retraction == "cayley":
            return 2 * vector / scalar
        length = mp.sqrt(mp.fsum(vector * vector))
        return vector * (2 * mp.atan2(length, scalar) / length if length else 2)

    assert_jets_agree(compiled(jet_of_inverse, space)(x, y), exact_jet(curve))


@on_groups
@at_sizes
def test_the_inverse_undoes_tau(space, size):
    x, y = line(space, size)
    exact = np.stack([x, y, 0 * x, 0 * x])
    assert_jets_agree(compiled(jet_of_both, space)(x, y), exact, condition=1 + size**2)
