"""Small matrices, Newton's method and equations with multipliers, by themselves: each against NumPy on random problems, tolerances a few times what
was measured."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.linalg import block_diag

from bismut.mechanics import newton, small_linalg
from bismut.mechanics.kkt import Band, eliminated, kkt_layout, solve_eliminated
from bismut.mechanics.newton import Cells, dense
from bismut.programs.evaluation import evaluate

EPS = np.finfo(float).eps


def random(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("n", range(1, small_linalg.UNROLLED + 2))
def test_small_systems_are_solved_to_round_off(n):
    """|Ax − b| ≤ 20 ε |A||x|, measured 4; a zero on the diagonal is no trouble."""
    A, b = random(n, n, n), random(n + 10, n)
    A[0, 0] = 0.0 if n > 1 else 1.0
    x = np.asarray(evaluate(small_linalg.solve, A, b))
    assert np.abs(A @ x - b).max() <= 20 * EPS * np.abs(A).sum() * np.abs(x).max()


@pytest.mark.parametrize("n", [7, 10, 17, 32])
@pytest.mark.parametrize("kind", ["full", "of low rank", "diagonal"])
def test_eigenvectors_found_in_rounds(n, kind):
    """|Q Λ Qᵀ − S| ≤ 20 n ε |S| and |QᵀQ − 1| ≤ 20 n ε; equal eigenvalues and zeros are no trouble."""
    A = random(n, n, n if kind == "full" else n // 2)
    S = np.eye(n) * 2 if kind == "diagonal" else A @ A.T
    values, Q = map(np.asarray, evaluate(small_linalg.eigen, S))
    assert np.abs(Q @ np.diag(values) @ Q.T - S).max() <= 20 * EPS * np.abs(S).max() * n
    assert np.abs(Q.T @ Q - np.eye(n)).max() <= 20 * EPS * n
    assert np.allclose(np.sort(values), np.linalg.eigvalsh(S), atol=20 * n * EPS * np.abs(S).max(), rtol=0)


@pytest.mark.parametrize("n", range(1, small_linalg.UNROLLED + 2))
def test_factors_and_eigenvectors_of_small_matrices(n):
    A = random(n, n, n)
    S = A @ A.T + np.eye(n)
    C = np.asarray(evaluate(small_linalg.cholesky, S))
    assert np.array_equal(C, np.tril(C))
    assert np.abs(C @ C.T - S).max() <= 8 * EPS * np.abs(S).max() * n
    values, Q = map(np.asarray, evaluate(small_linalg.eigen, S))
    assert np.abs(Q @ np.diag(values) @ Q.T - S).max() <= 20 * EPS * np.abs(S).max() * n
    assert np.abs(Q.T @ Q - np.eye(n)).max() <= 20 * EPS * n


def test_newton_finds_the_root_and_its_derivative():
    """x³ + a x = b: the derivative dx/db = 1/(3x² + a) comes from the implicit function theorem, not from the iterations."""
    a, b = np.array([1.0, 2.0, 0.5]), np.array([3.0, -40.0, 1e-3])
    solve = lambda b: newton.solve(lambda x: x**3 + a * x - b, jnp.zeros(3), Cells(((3, 1),)), linear=False)
    root = evaluate(solve, b)
    x = np.asarray(root.x)
    assert bool(root.converged)
    assert np.allclose(x**3 + a * x, b, rtol=8 * EPS, atol=0)
    slope = evaluate(jax.jacfwd(lambda b: solve(b).x), b)
    assert np.allclose(slope, np.diag(1 / (3 * x**2 + a)), rtol=1e-14, atol=1e-15)


def test_newton_says_when_there_is_no_root():
    root = evaluate(lambda x: newton.solve(lambda x: x**2 + 1, x, dense(1), linear=False), jnp.ones(1))
    assert not bool(root.converged)
    lost = evaluate(lambda x: newton.solve(lambda x: x / 0.0, x, dense(1), linear=True), jnp.ones(1))
    assert not bool(lost.converged)


def test_a_linear_equation_takes_one_correction():
    A, b = random(1, 4, 4), random(2, 4)
    root = evaluate(lambda x: newton.solve(lambda x: A @ x - b, x, dense(4), linear=True), jnp.zeros(4))
    assert int(root.iterations) == 1
    assert np.allclose(root.x, np.linalg.solve(A, b), rtol=1e-13)


def test_blocks_are_those_of_the_matrix():
    """Two blocks of size 1 and two of size 3, from three products."""
    cells = Cells(((2, 1), (2, 3)))
    whole = block_diag(*(random(i, s, s) for i, s in enumerate((1, 1, 3, 3))))
    y = random(9, cells.dim)

    def solved(y):
        found = newton.diagonal_blocks(lambda x: whole @ x, cells, float)
        return found, newton.factor_blocks(found, cells)(y)

    (ones, threes), x = evaluate(solved, y)
    assert np.array_equal(np.ravel(ones), np.diag(whole)[:2])
    assert np.array_equal(threes[1], whole[5:, 5:])
    assert np.allclose(x, np.linalg.solve(whole, y), rtol=1e-12)


@pytest.mark.parametrize("half", [1, 2])
def test_banded_elimination_is_the_dense_solve(half):
    k = 7
    S = random(half, k, k) + 8 * np.eye(k)
    S[np.abs(np.subtract.outer(np.arange(k), np.arange(k))) > half] = 0.0
    rows = np.arange(k)[:, None] + np.arange(-half, half + 1)
    bands = np.where((rows >= 0) & (rows < k), S[np.arange(k)[:, None], rows % k], 0.0)
    y = random(5, k)
    assert np.allclose(evaluate(lambda bands, y: solve_eliminated(*eliminated(bands), y), bands, y), np.linalg.solve(S, y), rtol=1e-13)
    order = tuple(int(i) for i in np.random.default_rng(0).permutation(k))
    mixed = np.zeros((k, k))
    mixed[np.ix_(order, order)] = S
    found = evaluate(lambda A, y: Band(order, half).factor(lambda x: A @ x, float)(y), mixed, y)
    assert np.allclose(found, np.linalg.solve(mixed, y), rtol=1e-13)


def test_a_chain_is_banded_and_its_saddle_is_solved():
    """Six points on a line, each bound to the next: five multipliers that couple to their neighbours alone, in whatever order they are given."""
    links = [(2, 3), (0, 1), (4, 5), (1, 2), (3, 4)]
    layout = kkt_layout(Cells(((6, 1),)), tuple(tuple(link) for link in links))
    assert layout.band.half == 1
    A, C = np.diag(1 + random(1, 6) ** 2), np.zeros((5, 6))
    for row, (i, j) in enumerate(links):
        C[row, [i, j]] = random(row, 2) + 2.0
    whole = np.block([[A, C.T], [C, np.zeros((5, 5))]])
    y = random(8, 11)
    found = evaluate(lambda A, y: layout.factor(lambda x: A @ x, np.dtype(float))(y), whole, y)
    assert np.allclose(found, np.linalg.solve(whole, y), rtol=1e-10, atol=1e-12)
