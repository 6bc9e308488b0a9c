"""Linear algebra of small matrices, written out; of larger ones it is loops over memory (`matrix_loops`).

Pivots differ between trajectories, so rows are exchanged by choosing, entry by entry, between those that may come to stand there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.programs.codegen.field import Array, lanes
from bismut.programs.codegen.frame import Scope
from bismut.programs.codegen.lane import array_of
from bismut.programs.codegen.loop_carry import is_shared, relabelled
from bismut.programs.operation import Operation, decomposition, operation, result
from bismut.programs.operations import matrix_loops
from bismut.programs.operations.matrix_loops import less_product
from bismut.programs.program import Refused

WRITTEN_OUT = 16  # rows up to which a matrix is written out: n³/3 multiplications
LARGEST = 128  # rows up to which there is code


def _looped(scope: Scope, inputs: list[Array], emit: Callable[..., list[Array]], *settings: Any) -> list[Array]:
    """What is the same for all trajectories is computed once."""
    rows = inputs[0].shape[-1]
    if rows > LARGEST:
        remedy = "what does not change can be factorised beforehand, with NumPy"
        raise Refused(f"linear algebra of matrices of {rows} rows, more than {LARGEST}; {remedy}")
    if is_shared(inputs, scope):
        return relabelled(emit(scope.shared(), *inputs, *settings))
    return emit(scope, *inputs, *settings)


class _OfMatrices(Operation):
    """Of the matrices that come first: written out or in loops, which is a matter of their size alone."""

    factorises = True

    def in_loops(self, equation: Any) -> bool:
        return max(equation.invars[0].aval.shape[-2:]) > WRITTEN_OUT


@operation("lu")
class _LU(_OfMatrices):
    jumps = False  # rows are exchanged at a jump, what is solved with them goes on smoothly

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        if self.in_loops(equation):
            return _looped(scope, inputs, matrix_loops.lu)
        matrices = lanes(scope, inputs[0])
        batch, (n, m) = matrices.shape[:-2], matrices.shape[-2:]
        kind = np.int32
        results = [_factored(scope, matrices[g], min(n, m)) for g in np.ndindex(*batch)]
        shape = lambda *tail: (*batch, *tail)
        factors = array_of([lane for rows, _, _ in results for lane in rows.flat], shape(n, m))
        pivots = array_of([lane for _, pivots, _ in results for lane in pivots], shape(min(n, m)))
        order = array_of([lane for _, _, order in results for lane in order], shape(n))
        return [factors, _typed(scope, pivots, kind), _typed(scope, order, kind)]


def _typed(scope: Scope, x: np.ndarray, kind: Any) -> np.ndarray:
    return array_of([scope.lane("convert_element_type", [lane], {"new_dtype": np.dtype(kind)}) for lane in x.flat], x.shape)


def _factored(scope: Scope, matrix: np.ndarray, pivots: int) -> tuple[np.ndarray, list, list]:
    """L and U in one matrix, the row exchanged at each stage, and the order of rows that results."""
    a, n = matrix.copy(), matrix.shape[0]
    order: list = [np.int32(i) for i in range(n)]
    chosen = []
    for k in range(pivots):
        size = [scope.lane("abs", [a[i, k]]) for i in range(k, n)]
        best, place = size[0], np.int32(k)
        for i in range(k + 1, n):
            larger = scope.lane("gt", [size[i - k], best])
            best, place = scope.lane("select_n", [larger, best, size[i - k]]), scope.lane("select_n", [larger, place, np.int32(i)])
        chosen.append(place)
        rows = [[*a[i], order[i]] for i in range(n)]
        top = rows[k]
        for i in range(k + 1, n):
            here = scope.lane("eq", [place, np.int32(i)])
            swap = lambda old, new, here=here: scope.lane("select_n", [here, old, new])
            top, rows[i] = [swap(x, y) for x, y in zip(top, rows[i], strict=True)], [swap(x, y) for x, y in zip(rows[i], rows[k], strict=True)]
        rows[k] = top
        for i in range(n):
            a[i], order[i] = array_of(rows[i][:-1], (len(rows[i]) - 1,)), rows[i][-1]
        for i in range(k + 1, n):
            a[i, k] = scope.lane("div", [a[i, k], a[k, k]])
            for j in range(k + 1, a.shape[1]):
                a[i, j] = less_product(scope, a[i, j], a[i, k], a[k, j])
    return a, chosen, order


@operation("lu_pivots_to_permutation")
class _Permutation(Operation):
    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        n = equation.params["permutation_size"]
        if n > WRITTEN_OUT:
            return _looped(scope, inputs, matrix_loops.permutation, n)
        pivots = lanes(scope, inputs[0])
        outputs = []
        for g in np.ndindex(*pivots.shape[:-1]):
            order: list = [np.int32(i) for i in range(n)]
            for k, place in enumerate(pivots[g]):
                for i in range(k + 1, n):
                    here = scope.lane("eq", [place, np.int32(i)])
                    order[k], order[i] = scope.lane("select_n", [here, order[k], order[i]]), scope.lane("select_n", [here, order[i], order[k]])
            outputs += order
        return [array_of(outputs, (*pivots.shape[:-1], n))]


@operation("triangular_solve")
class _TriangularSolve(_OfMatrices):
    affine_in = slice(1, None)  # (matrix, right-hand side)

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        p = equation.params
        if self.in_loops(equation):
            flags = p["lower"], bool(p["transpose_a"]), not p["left_side"], p["unit_diagonal"]
            return _looped(scope, inputs, matrix_loops.triangular_solve, *flags)
        a, b = (lanes(scope, inputs[0]), lanes(scope, inputs[1]))
        if p["transpose_a"]:
            a = np.swapaxes(a, -1, -2)
        lower = p["lower"] != bool(p["transpose_a"])
        if not p["left_side"]:  # x a = b is aᵀ xᵀ = bᵀ
            a, b, lower = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not lower
        x = b.copy()
        n = a.shape[-1]
        for g in np.ndindex(*b.shape[:-2]):
            for c in range(b.shape[-1]):
                for i in range(n) if lower else reversed(range(n)):
                    total = x[(*g, i, c)]
                    for j in range(i) if lower else range(i + 1, n):
                        total = less_product(scope, total, a[(*g, i, j)], x[(*g, j, c)])
                    x[(*g, i, c)] = total if p["unit_diagonal"] else scope.lane("div", [total, a[(*g, i, i)]])
        return [x if p["left_side"] else np.swapaxes(x, -1, -2)]


@operation("cholesky")
class _Cholesky(_OfMatrices):
    """L with a = L Lᵀ; NaN throughout where a is not positive definite, as XLA has it."""

    def emit(self, scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
        if self.in_loops(equation):
            return _looped(scope, inputs, matrix_loops.cholesky)
        a = lanes(scope, inputs[0])
        out, n = a.copy(), a.shape[-1]
        kind = np.dtype(result(equation).dtype).type
        for g in np.ndindex(*a.shape[:-2]):
            c, bad = out[g], np.bool_(False)
            for j in range(n):
                for i in range(j, n):
                    total = a[(*g, i, j)]
                    for k in range(j):
                        total = less_product(scope, total, c[i, k], c[j, k])
                    if i == j:
                        bad = scope.lane("or", [bad, scope.lane("le", [total, kind(0)])])
                    c[i, j] = scope.lane("sqrt", [total]) if i == j else scope.lane("div", [total, c[j, j]])
                c[j, j + 1 :] = kind(0)
            for i, j in zip(*np.tril_indices(n), strict=True):
                c[i, j] = scope.lane("select_n", [bad, c[i, j], kind(np.nan)])
        return [out]


@decomposition("tridiagonal_solve")
def _tridiagonal_solve(below, diagonal, above, b, **_):
    """Elimination without exchanges (Thomas), as XLA does it, for the last two axes."""

    def one(below, diagonal, above, b):
        def forward(now, row):
            c, d = now
            low, middle, high, right = row
            pivot = middle - low * c
            return (high / pivot, (right - low * d) / pivot), now

        def back(x, row):
            c, d = row
            return d - c * x, x

        first = above[0] / diagonal[0], b[0] / diagonal[0]
        (_, last), rows = jax.lax.scan(forward, first, (below[1:], diagonal[1:], above[1:], b[1:]))
        top, others = jax.lax.scan(back, last, rows, reverse=True)
        return jnp.concatenate([top[None], others])

    for _ in range(b.ndim - 2):
        one = jax.vmap(one)
    return one(below, diagonal, above, b)
