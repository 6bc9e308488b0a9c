"""Functions that people write, as machine code: against XLA, which is the judge, and against mpmath and LAPACK, which know better."""

import jax
import jax.numpy as jnp
import jax.scipy as jsp
import mpmath
import numpy as np
import pytest

from bismut.programs import equations, trace
from bismut.programs.codegen.walk import unknown
from bismut.programs.decomposition import simplified
from tests.engines.functions import evaluate

RANDOM = np.random.default_rng(11)
N = 9

vectors = lambda *shape: RANDOM.normal(size=(N, *shape))
positive = lambda *shape: RANDOM.gamma(1.5, 2.0, size=(N, *shape))
TABLE = np.cumsum(RANDOM.uniform(0.01, 0.2, 60)) - 3.0
HEIGHTS = np.sin(TABLE)
GRID = jsp.interpolate.RegularGridInterpolator((np.linspace(-3, 3, 7), np.linspace(-3, 3, 5)), RANDOM.normal(size=(7, 5)), bounds_error=False)
PLANE = jnp.asarray(RANDOM.normal(size=(6, 6)))

# Each with its force, where it has one.
SMOOTH = {
    "interp": (lambda x: jnp.sum(jnp.interp(x, TABLE, HEIGHTS)), vectors(4)),
    "grid": (lambda x: GRID(x[None])[0], vectors(2)),
    "map_coordinates": (lambda x: jsp.ndimage.map_coordinates(PLANE, [x[:1], x[1:]], order=1, mode="nearest")[0], positive(2)),
    "tile": (lambda x: jnp.sum(jnp.tile(x, (2, 3)) ** 2 * jnp.arange(6.0)), vectors(2, 2)),
    "top_k": (lambda x: jax.lax.top_k(x, 3)[0] @ jnp.arange(1.0, 4.0), vectors(40)),
    "sort": (lambda x: jnp.sort(x) @ jnp.arange(33.0), vectors(33)),
    "windows": (lambda x: jnp.sum(jax.lax.reduce_window(x, 0.0, jax.lax.add, (3,), (2,), "SAME") ** 2), vectors(9)),
    "pooling": (lambda x: jnp.sum(jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (3, 2), (2, 1), "VALID") ** 2), vectors(5, 4)),
    "convolve": (lambda x: jnp.sum(jnp.convolve(x, x[:3] + 1.0) ** 2), vectors(8)),
    "convolve2d": (lambda x: jnp.sum(jsp.signal.convolve2d(x, jnp.sin(x[:2, :2]), mode="same") ** 2), vectors(4, 4)),
    "expm": (lambda a: jnp.sum(jnp.sin(jsp.linalg.expm(a))), vectors(3, 3)),
    "eigvalsh": (lambda a: jnp.linalg.eigvalsh(a + a.T) @ jnp.array([1.0, -2.0, 0.5]), vectors(3, 3)),
    "svd": (lambda a: jnp.linalg.svd(a, compute_uv=False) @ jnp.array([1.0, -2.0, 0.5]), vectors(4, 3)),
    "pinv": (lambda a: jnp.sum(jnp.linalg.pinv(a) ** 2), vectors(3, 2)),
    "qr": (lambda a: jnp.sum(jnp.linalg.qr(a)[1] * jnp.arange(9.0).reshape(3, 3)), vectors(3, 3)),
    "lstsq": (lambda a: jnp.linalg.lstsq(a[:, :2], a[:, 2])[0] @ jnp.array([1.0, 2.0]), vectors(4, 3)),
    "gammaln": (lambda x: jnp.sum(jsp.special.gammaln(x)), positive(3)),
    "digamma": (lambda x: jnp.sum(jsp.special.digamma(x)), positive(3)),
    "bessel": (lambda x: jnp.sum(jsp.special.i0e(x) * jsp.special.i1e(2 * x)), vectors(3)),
    "gammainc": (lambda x: jnp.sum(jsp.special.gammainc(2.5, x) + jsp.special.gammaincc(0.7, x)), positive(2)),
    "gammainc, by a": (lambda x: jnp.sum(jsp.special.gammainc(x[:2], x[2:])), positive(4)),
    "betainc": (lambda x: jnp.sum(jsp.special.betainc(2.5, 0.7, x / (1 + x))), positive(2)),
    "cumlogsumexp": (lambda x: jnp.sum(jax.lax.cumlogsumexp(x) ** 2), vectors(4)),
    "tridiagonal": (lambda x: jnp.sum(jax.lax.linalg.tridiagonal_solve(x[0], x[1] + 4, x[2], x.T)), positive(3, 5)),
}


QUICK = ("interp", "top_k", "svd", "gammainc", "convolve", "pooling")  # the others take half a minute


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SMOOTH])
def test_values_and_forces_are_those_of_xla(name):
    function, x = SMOOTH[name]
    both = jax.value_and_grad(function)
    for a, b in zip(evaluate(both, x), jax.jit(jax.vmap(both))(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-12)


SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.0, 1.0])


def _bits(x):
    whole = (1e3 * x).astype(int)
    return jax.lax.population_count(whole), jax.lax.clz(whole.astype(jnp.int32)), jnp.nextafter(x, 0.3)


EDGES = np.sort(np.r_[TABLE, 0.0, 1.0, 1.0])
_ties = lambda x: jnp.concatenate([x, jnp.round(x), jnp.asarray(SPECIAL)])
_few = lambda x: _ties(x[:2])
DISCRETE = {
    "scan": lambda x: jnp.searchsorted(EDGES, _few(x), side="right"),
    "sorted": lambda x: jnp.searchsorted(EDGES, _few(x), method="sort"),
    "all": lambda x: jnp.searchsorted(EDGES, _few(x), method="compare_all"),
    "digitize": lambda x: jnp.digitize(_few(x), EDGES),
    "histogram": lambda x: jnp.histogram(x, bins=6, range=(-2.0, 2.0))[0],
    "argsort": lambda x: jnp.argsort(_ties(x)),
    "sort": lambda x: jnp.sort(_ties(x)),
    "lexsort": lambda x: jnp.lexsort((x[:9], jnp.round(x[:9]))),
    "descending": lambda x: jnp.argsort(_few(x), descending=True),
    "top_k": lambda x: jax.lax.top_k(_ties(x), 9),
    "small": lambda x: jax.lax.top_k(x[:5], 2),
    "bits": lambda x: _bits(x[:4]),
    "columns": lambda x: jnp.sort(jnp.stack([_few(x), -_few(x)]).T, axis=0),
}


def test_what_is_discrete_is_exactly_that_of_xla():
    """Places in tables, ranks, counts, bits; with equal entries, zeros of both signs and NaN, at whose order and places XLA's are taken."""
    x = vectors(20)
    together = lambda x: {name: f(x) for name, f in DISCRETE.items()}
    for (path, a), b in zip(jax.tree.leaves_with_path(evaluate(together, x)), jax.tree.leaves(jax.jit(jax.vmap(together))(x)), strict=True):
        np.testing.assert_array_equal(a, b, err_msg=str(path))
        assert a.dtype == b.dtype


def test_factors_of_matrices_are_factors():
    """A = QR with LAPACK's signs; A = UΣVᵀ and A = VΛVᵀ with orthogonal factors, also where values are equal, zero, or 10⁻¹² of the largest."""
    a = vectors(4, 3)
    a[1, :, 2] = a[1, :, 0]
    a[2] = 0.0
    a[3] = np.eye(4, 3)
    a[4, :, 1] = a[4, :, 0] + 1e-12 * a[4, :, 1]

    def factors(a):
        return jnp.linalg.qr(a, mode="complete"), jnp.linalg.svd(a), jnp.linalg.svd(a.T, full_matrices=False), jnp.linalg.eigh(a @ a.T)

    (q, r), (u, s, vt), (u2, s2, vt2), (values, v) = evaluate(factors, a)
    transposed = lambda x: np.swapaxes(x, -1, -2)
    for x, y in zip((q, r), np.linalg.qr(a, mode="complete"), strict=True):
        np.testing.assert_allclose(x[[0, 5, 6, 7, 8]], y[[0, 5, 6, 7, 8]], atol=1e-14)
    np.testing.assert_allclose(q @ r, a, atol=1e-14)
    np.testing.assert_allclose(u[..., :3] * s[:, None] @ vt, a, atol=1e-14)
    np.testing.assert_allclose(u2 * s2[:, None] @ vt2, transposed(a), atol=1e-14)
    np.testing.assert_allclose(v * values[:, None] @ transposed(v), a @ transposed(a), atol=2e-14)
    for x in (q, u, transposed(vt), v, u2, transposed(vt2)):
        np.testing.assert_allclose(transposed(x) @ x, np.broadcast_to(np.eye(x.shape[-1]), (N, *[x.shape[-1]] * 2)), atol=1e-14)
    np.testing.assert_allclose(s, np.linalg.svd(a)[1], rtol=1e-13, atol=1e-15)
    assert (np.diff(s) <= 0).all()
    assert (np.diff(values) >= 0).all()


EXACT = {
    "lgamma": (jax.lax.lgamma, lambda x: mpmath.loggamma(x).real, [0.1, 0.5, 1.0, 1.5, 2.0, 7.3, 88.8, 1e5, -0.5, -3.7], 4e-15),
    "digamma": (jax.lax.digamma, mpmath.digamma, [0.1, 0.5, 1.0, 1.4616321449683622, 2.0, 7.3, 88.8, 1e5, -0.5, -3.7], 1e-14),
    "polygamma": (lambda x: jax.lax.polygamma(2.0, x), lambda x: mpmath.polygamma(2, x), [0.1, 0.5, 1.0, 2.0, 7.3, 88.8, 1e5], 1e-14),
    "zeta": (lambda x: jax.lax.zeta(x, 0.3), lambda x: mpmath.zeta(x, 0.3), [1.1, 1.5, 2.0, 3.3, 12.0, 80.0], 1e-14),
    "i0e": (jax.lax.bessel_i0e, lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(0, x), [0.0, 0.3, -2.0, 7.9, 8.0, 8.1, 30.0, 1e4], 2e-15),
    "i1e": (jax.lax.bessel_i1e, lambda x: mpmath.exp(-abs(x)) * mpmath.besseli(1, x), [0.0, 0.3, -2.0, 7.9, 8.0, 8.1, 30.0, -1e4], 2e-15),
    "P(2.5, x)": (
        lambda x: jax.lax.igamma(jnp.full_like(x, 2.5), x),
        lambda x: mpmath.gammainc(2.5, 0, x, regularized=True),
        [0.0, 1e-8, 0.4, 2.5, 2.6, 9.0, 60.0],
        1e-14,
    ),
    "Q(30, x)": (
        lambda x: jax.lax.igammac(jnp.full_like(x, 30.0), x),
        lambda x: mpmath.gammainc(30, x, regularized=True),
        [0.5, 5.0, 29.9, 30.0, 31.0, 60.0, 200.0],
        1e-13,
    ),
    "∂P(a, 3)/∂a": (
        lambda a: jax.lax.igamma_grad_a(a, jnp.full_like(a, 3.0)),
        lambda a: mpmath.diff(lambda s: mpmath.gammainc(s, 0, 3, regularized=True), a),
        [1e-3, 0.4, 2.9, 3.0, 3.1, 9.0, 60.0],
        1e-14,
    ),
    "I_x(2.5, 0.7)": (
        lambda x: jax.lax.betainc(jnp.full_like(x, 2.5), jnp.full_like(x, 0.7), x),
        lambda x: mpmath.betainc(2.5, 0.7, 0, x, regularized=True),
        [0.0, 1e-8, 0.2, 0.5, 0.83, 0.9, 1.0],
        1e-14,
    ),
}


def test_special_functions_have_the_digits_they_claim():
    """Errors relative to max(1, |value|), against thirty digits."""
    for name, (function, exact, points, tolerance) in EXACT.items():
        with mpmath.workdps(30):
            expected = np.array([float(exact(mpmath.mpf(x))) for x in points])
        value = evaluate(lambda x, f=function: f(x), np.array(points))
        assert np.max(np.abs(value - expected) / np.maximum(1, np.abs(expected))) < tolerance, name


def test_special_functions_at_special_points_are_those_of_xla():
    points = np.array([0.0, -0.0, -1.0, -2.0, 1.0, np.inf, -np.inf, np.nan, 300.0])
    functions = lambda x: [
        jax.lax.lgamma(x),
        jax.lax.digamma(x),
        jax.lax.bessel_i0e(x),
        jax.lax.bessel_i1e(x),
        *(f(a, b) for f in (jax.lax.igamma, jax.lax.igammac, jax.lax.igamma_grad_a) for a, b in ((x, jnp.ones_like(x)), (jnp.ones_like(x), x))),
        jax.lax.betainc(jnp.full_like(x, 2.0), jnp.full_like(x, 3.0), x),
    ]
    for k, (a, b) in enumerate(zip(evaluate(functions, points), jax.jit(jax.vmap(functions))(points), strict=True)):
        np.testing.assert_allclose(a, b, rtol=1e-12, err_msg=str(k))


def test_what_is_too_large_is_refused_in_words():
    too_large = {
        "eigh of 40 × 40": lambda: jnp.linalg.eigh(jnp.eye(40)),
        "svd of 30 × 2": lambda: jnp.linalg.svd(jnp.ones((30, 2))),
        "windows of 600": lambda: jax.lax.reduce_window(jnp.ones(700), 0.0, jax.lax.add, (600,), (1,), "VALID"),
    }
    for words, function in too_large.items():
        reasons = [e.primitive.name for e in equations(simplified(trace(function).program))]
        assert any(reason.startswith(words) for reason in reasons), reasons


def test_what_only_xla_does_is_called_as_people_write_it():
    assert unknown(trace(lambda x: jax.debug.print("{}", x), jnp.ones(2)).program) == {"jax.debug.print"}
