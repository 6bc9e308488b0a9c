"""τ, τ⁻¹ and dexp⁻¹ are right to the third derivative along any line, at 0, near 0, and up to half a turn; exact values in 60 digits.

t ↦ τ(x + ty)             against matrices:  exp X,  (1 − X/2)⁻¹(1 + X/2)
t ↦ τ⁻¹(τ(x) exp(ty))     against products of quaternions
t ↦ dexp⁻¹_{x + ty} z     against its closed form
"""

import jax
import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest

from bismut.spaces import SE3, SO3
from bismut.spaces.rotation import dexp_inv

from .catalogue import RETRACTIONS, batched
from .test_matrix_formulas import algebra, matrices

SIZES = np.array([0.0, 1e-9, 1e-3, 1.0, 3.0, np.pi - 1e-6])
GROUPS = [group(retraction) for group in (SO3, SE3) for retraction in RETRACTIONS]  # SE2 calls those of SE3
TOLERANCE = 1e-13  # absolute; all values are of order 1
STEP = mp.mpf(10) ** -12


def lines(space):
    """Points x whose rotational part has the length of each size, and directions y of length 1."""
    x, y = np.random.default_rng(space.dim).normal(size=(2, len(SIZES), space.dim))
    x = x / np.linalg.norm(x[:, :3], axis=1, keepdims=True) * SIZES[:, None]
    y = y / np.linalg.norm(y, axis=1, keepdims=True)
    shape = (len(SIZES), *np.shape(space.zero()))
    return x.reshape(shape), y.reshape(shape)


def jets(curve, *arguments):
    """Value and three derivatives of t ↦ curve(t, ...) at t = 0, for each line. Each level returns (f, f′) of the one below."""

    def raised(f):
        return lambda t: jax.jvp(f, (t,), (1.0,))

    def jet(*line):
        ((f, f1), (_, f2)), (_, (_, f3)) = raised(raised(raised(lambda t: curve(t, *line))))(0.0)
        return [f, f1, f2, f3]

    return batched(jet)(*arguments)


def exact_jet(curve):
    """The same by central differences with steps of 1e−12 in 60 digits: errors of 1e−24 from the step and from rounding."""
    with mp.workdps(60):
        a, b, f, c, d = (np.array(curve(k * STEP)) for k in (-2, -1, 0, 1, 2))
        derivatives = f, (c - b) / (2 * STEP), (c - 2 * f + b) / STEP**2, (d - 2 * c + 2 * b - a) / (2 * STEP**3)
        return [value.astype(float) for value in derivatives]


def assert_jets_agree(computed, exact):
    """For every line, against its exact jet; τ⁻¹ = cay⁻¹ has derivatives up to 30, hence the scale."""
    errors = {}
    for order in range(4):
        for size, a, b in zip(SIZES, np.asarray(computed[order]), exact, strict=True):
            error = np.max(np.abs(a - b[order])) / (1 + np.max(np.abs(b[order])))
            if not error < TOLERANCE:
                errors[order, float(size)] = error
    assert errors == {}


def real(x):
    return np.vectorize(mp.mpf, otypes=[object])(x)


def exact_tau(space, X):
    X, one = mp.matrix(X), mp.eye(len(X))
    return (mp.expm(X) if space.retraction == "exp" else (one - X / 2) ** -1 * (one + X / 2)).tolist()


def length(x):
    return mp.sqrt(mp.fsum(x * x))


def exact_quaternion(x):
    angle = length(x)
    return mp.cos(angle / 2), x * (mp.sin(angle / 2) / angle if angle else mp.mpf(1) / 2)


def exact_inverse(retraction, x, y, t):
    s, u = exact_quaternion(x) if retraction == "exp" else (mp.mpf(1), x / 2)
    c, v = exact_quaternion(t * y)
    scalar, vector = s * c - u @ v, s * v + c * u + np.cross(u, v)
    if retraction == "cayley":
        return 2 * vector / scalar
    n = length(vector)
    return vector * (2 * mp.atan2(n, scalar) / n if n else 2)


def exact_dexp_inv(x, z):
    angle, turned = length(x), np.cross(x, z)
    c = (1 - angle / 2 * mp.cot(angle / 2)) / angle**2 if angle else mp.mpf(1) / 12
    return z - turned / 2 + c * np.cross(x, turned)


@pytest.mark.parametrize("space", GROUPS, ids=str)
def test_tau(space):
    x, y = lines(space)
    X, Y = real(algebra(space, x)), real(algebra(space, y))
    exact = [exact_jet(lambda t, a=a, b=b: exact_tau(space, a + t * b)) for a, b in zip(X, Y, strict=True)]
    computed = jets(lambda t, x, y: space.tau(x + t * y), x, y)
    homogeneous = [matrices(g) for g in computed]
    if isinstance(space, SE3):
        for derivative in homogeneous[1:]:
            derivative[:, 3, 3] = 0  # the last row of the matrix is constant
    assert_jets_agree(homogeneous, exact)


@pytest.mark.parametrize("retraction", RETRACTIONS)
def test_the_inverse(retraction):
    space = SO3(retraction)
    x, y = lines(space)
    exact = [exact_jet(lambda t, a=a, b=b: exact_inverse(retraction, a, b, t)) for a, b in zip(real(x), real(y), strict=True)]

    def curve(t, R, Y):
        return space.tau_inv(R @ (jnp.eye(3) + t * Y + t**2 * Y @ Y / 2 + t**3 * Y @ Y @ Y / 6))

    assert_jets_agree(jets(curve, batched(space.tau)(x), algebra(space, y)), exact)


def test_dexp_inv():
    (x, y), z = lines(SO3()), np.random.default_rng(1).normal(size=(len(SIZES), 3))
    exact = [exact_jet(lambda t, a=a, b=b, c=c: exact_dexp_inv(a + t * b, c)) for a, b, c in zip(real(x), real(y), real(z), strict=True)]
    assert_jets_agree(jets(lambda t, x, y, z: dexp_inv(x + t * y, z), x, y, z), exact)
