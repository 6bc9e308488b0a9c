"""Linear algebra of larger matrices: the loops give what is written out, to the bit, and what LAPACK gives, to round-off."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.lax import linalg

import bismut as bm
from bismut.engines.native.engine import Native
from bismut.errors import BismutError
from bismut.programs.operations import linear_algebra
from tests.engines.functions import evaluate
from tests.engines.test_short_steps import system_of, task_for

RANDOM = np.random.default_rng(5)
TRAJECTORIES = 5


def matrices(n: int, m: int | None = None) -> np.ndarray:
    return RANDOM.normal(size=(TRAJECTORIES, n, m or n))


def positive(n: int) -> np.ndarray:
    A = matrices(n)
    return A @ np.swapaxes(A, 1, 2) + n * np.eye(n)


def triangular(**settings):
    return lambda a, b: linalg.triangular_solve(a, b, **settings)


def everything(a, b):
    """Solutions of all kinds, for rows and for columns; factors of a single matrix and of a stack."""
    factors, pivots, order = linalg.lu(a)
    stack = jnp.stack([a @ a.T + jnp.eye(len(a)), -a])
    sides = [
        triangular(left_side=bool(left), lower=bool(lower), transpose_a=bool(transpose), unit_diagonal=bool(unit))(a, b if left else b.T)
        for left, lower, transpose, unit in ((1, 1, 0, 0), (1, 0, 1, 1), (0, 1, 1, 0), (0, 0, 0, 0))
    ]
    return factors, pivots, order, linalg.lu_pivots_to_permutation(pivots, len(a)), lax.linalg.cholesky(stack, symmetrize_input=False), sides


@pytest.mark.parametrize("kind", [np.float64, pytest.param(np.float32, marks=pytest.mark.slow)])
def test_loops_have_the_bits_of_what_is_written_out(kind, monkeypatch):
    """Pivots of several trajectories, matrices that are not definite, several columns at once and left over."""
    n = 5
    a, b = matrices(n).astype(kind), matrices(n, 6).astype(kind)
    written = jax.tree.leaves(evaluate(everything, a, b))
    monkeypatch.setattr(linear_algebra, "WRITTEN_OUT", 2)
    looped = jax.tree.leaves(evaluate(everything, a, b, width=8))
    assert all(np.array_equal(x, y, equal_nan=True) for x, y in zip(written, looped, strict=True))
    assert any(np.isnan(x).any() for x in written)


@pytest.mark.parametrize("n", [17, pytest.param(32, marks=pytest.mark.slow)])
def test_larger_matrices_agree_with_lapack(n):
    """Also one that all trajectories share, and derivatives."""
    a, p, b, shared = matrices(n), positive(n), matrices(n, 3), positive(n)[0]

    def function(a, p, b, shared):
        slope = jax.grad(lambda p: jnp.sum(jnp.log(jnp.diagonal(jnp.linalg.cholesky(p)))))
        return jnp.linalg.solve(a, b), jnp.linalg.det(a), jnp.linalg.cholesky(p), slope(p), jnp.linalg.solve(shared, b), jnp.linalg.cholesky(shared)

    found = evaluate(function, a, p, b, numbers=(shared,))
    expected = jax.vmap(lambda a, p, b: function(a, p, b, shared))(a, p, b)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-11 * np.abs(y).max())


def test_a_rectangular_matrix_is_factorised_as_lapack_does():
    for shape in ((20, 5), (5, 20)):
        a = matrices(*shape)
        for x, y in zip(evaluate(linalg.lu, a), linalg.lu(a), strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-10, atol=1e-12)


def test_a_potential_of_large_matrices_has_short_machine_code():
    """24 rows written out were 40 MB of code."""
    for n in (24, 48):
        length = len(Native()._write(task_for(system_of("matrix", n))).text)
        assert length < 600_000


def test_a_matrix_beyond_reach_says_what_to_do():
    n = linear_algebra.LARGEST + 1
    system = bm.mechanical(bm.Euclidean(1), potential=lambda q: jnp.linalg.det(jnp.eye(n) * (2 + jnp.sin(q[0]))))
    scheme = bm.Verlet(system)
    with pytest.raises(BismutError, match=rf"matrices of {n} rows, more than {n - 1}; what does not change can be factorised beforehand"):
        bm.simulate(scheme, scheme.start(np.zeros(1), velocity=np.zeros(1)), step=0.1, steps=1, mode="native", progress=False)
