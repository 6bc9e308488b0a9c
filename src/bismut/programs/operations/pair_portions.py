"""Many pairs evaluated in NumPy: a portion at a time, and where they have a reach only those within it.

    s = Σ_portions Σ_{p in portion} g(x_i, x_j, d_p),      z_i += a,  z_j += b,      y_p = f

All pairs of 4000 bodies at once took 3.6 GB and 2 s whatever the cutoff, and of 32 000 no memory suffices. Near ones come from a k-d tree in the
periodic box; a little more than the reach is looked at, since what is beyond it is exactly zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import compress

import jax
import numpy as np
import scipy

from bismut.programs.jaxprs import as_function, trace
from bismut.programs.layout import Bonds, LoopLayout, Reach
from bismut.programs.program import Equation, Loop, Program

PORTION = 2**13  # pairs: the values of a thousand equations on three numbers take 200 MB
ALL_AT_ONCE = 2**15  # pairs up to which all of them are evaluated as operations on arrays
MOST_NEAR = 2**24  # pairs within reach whose numbers are kept; where there are more, it is of no use
_MARGIN = 1 + 1e-9


def in_portions(equation: Equation) -> bool:
    return equation.primitive.name == "pairs" and equation.source.layout.pairs > ALL_AT_ONCE


def portion_program(equation: Equation) -> Program:
    """All operands of a loop, of bodies at i and at j and of items for the pairs of a portion ↦ results of these pairs that are used."""
    return _portion_program(equation.source)


@lru_cache(maxsize=64)
def _portion_program(loop: Loop) -> Program:
    layout = loop.layout
    shared, bodies, own = layout.operands(loop.kinds)
    kinds = [jax.ShapeDtypeStruct(*kind) for kind in (*shared, *(((PORTION, *shape[1:]), dtype) for shape, dtype in (*bodies, *bodies, *own)))]
    axes = (*(None for _ in shared), *(0 for _ in kinds[len(shared) :]))
    pairwise = jax.vmap(as_function(loop.jaxpr), axes, axis_size=PORTION)
    wanted = layout.wanted(loop.used)
    return trace(lambda *arguments: list(compress(pairwise(*arguments), wanted)), *kinds).program


def evaluate(equation: Equation, inputs: Sequence, run: Callable[[Program, list], list]) -> list:
    """The outputs of a loop over pairs; `run` carries out a program."""
    loop, program = equation.source, portion_program(equation)
    layout, given = loop.layout, iter(inputs)
    operands = [np.asarray(next(given)) if mark else None for mark in loop.reads]
    shared, bodies, own = layout.operands(operands)
    zeros = [np.zeros(aval.shape, aval.dtype) for aval in program.in_avals]  # in place of what is not read
    use = dict(zip(("totals", "sums", "own"), layout.results(loop.used), strict=True))
    kinds = iter(program.out_avals)
    totals = [np.zeros(aval.shape[1:], aval.dtype) for aval in _next(kinds, sum(use["totals"]))]
    sums = [np.zeros((layout.length, *aval.shape[1:]), aval.dtype) for aval in _next(kinds, sum(use["sums"]))]
    _next(kinds, len(sums))
    values = [np.zeros((layout.pairs, *aval.shape[1:]), aval.dtype) for aval in kinds]
    where = None if layout.reach is None or own or values else bodies[layout.reach.positions]
    for first, i, j in _portions(layout, where):
        n = len(i)
        rows = [None if x is None else x[k] for k in (i, j) for x in bodies] + [None if x is None else x[first : first + n] for x in own]
        arguments = [*shared, *(None if row is None else _filled(row) for row in rows)]
        results = iter(run(program, [zero if x is None else x for x, zero in zip(arguments, zeros, strict=True)]))
        for k in range(len(totals)):
            totals[k] = totals[k] + np.sum(next(results)[:n], 0)
        at_i, at_j = ([next(results) for _ in sums] for _ in range(2)) if sums else ([], [])
        for target, from_i, from_j in zip(sums, at_i, at_j, strict=True):
            _add(target, i, from_i[:n])
            _add(target, j, from_j[:n])
        for target, x in zip(values, results, strict=True):
            target[first : first + n] = x[:n]
    return [*totals, *sums, *values]


def _next(kinds: Iterator, count: int) -> list:
    return [next(kinds) for _ in range(count)]


def _filled(rows: np.ndarray) -> np.ndarray:
    """As many rows as a portion has; what comes after the last one is not used, and is the first again."""
    missing = PORTION - len(rows)
    return np.concatenate([rows, np.broadcast_to(rows[:1], (missing, *rows.shape[1:]))]) if missing else rows


def _add(target: np.ndarray, k: np.ndarray, rows: np.ndarray) -> None:
    """target[k] += rows, in their order."""
    if rows.dtype != np.float64:
        np.add.at(target, k, rows)
        return
    for place in np.ndindex(rows.shape[1:]):
        target[(slice(None), *place)] += np.bincount(k, rows[(slice(None), *place)], len(target))


def _portions(layout: LoopLayout, positions: np.ndarray | None) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """The number of the first pair of each portion, and the bodies i < j of its pairs; those of near ones have no numbers."""
    near = None if positions is None or layout.reach is None else near_pairs(positions, layout.reach)
    bonds: Bonds | None = near or layout.bonds
    count = layout.pairs if bonds is None else len(bonds.i)
    for first in range(0, count, PORTION):
        after = min(first + PORTION, count)
        i, j = _pairs(layout.length, first, after) if bonds is None else (bonds.i[first:after], bonds.j[first:after])
        yield first, i, j


def _pairs(count: int, first: int, after: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs in the order in which they are stored: in round s, i and i + s (mod K)."""
    number = np.arange(first, after)
    i = number % count
    j = (i + number // count + 1) % count
    return np.minimum(i, j), np.maximum(i, j)


def near_pairs(x: np.ndarray, reach: Reach) -> Bonds | None:
    """The pairs within reach, and some that are just beyond; None where all of them have to be looked at."""
    if x.ndim != 2 or not np.isfinite(x).all():
        return None
    x = np.asarray(x, float)
    sides = np.array([side if np.isfinite(side) else 0.0 for side in reach.box or (np.inf,) * x.shape[1]])
    period = np.where(sides > 0, sides, 1.0)
    wrapped = np.where(sides > 0, x - period * np.floor(x / period), x)
    wrapped = np.where((sides > 0) & (wrapped >= sides), 0.0, wrapped)  # round-off
    tree = scipy.spatial.KDTree(wrapped, boxsize=sides)
    far = reach.cutoff * _MARGIN
    if tree.count_neighbors(tree, far) > 2 * MOST_NEAR:
        return None
    near = tree.query_pairs(far, output_type="ndarray")
    near = near[np.lexsort((near[:, 1], near[:, 0]))]
    return Bonds(near[:, 0], near[:, 1])
