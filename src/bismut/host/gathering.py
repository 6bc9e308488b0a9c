"""Gather and scatter in NumPy: for every number that is moved, its place in the array."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from jax.lax import GatherScatterMode


class _Moves(NamedTuple):
    """Windows of an array: which of its axes a row of indices speaks of, which count along with an axis of the rows, and where the others appear."""

    spoken: tuple[int, ...]
    along: dict[int, int]
    windows: dict[int, int]  # axis of the array ↦ axis of the numbers that are moved


def _moves(rank: int, gone: tuple[int, ...], along: tuple, rows: tuple, spoken: tuple, places: tuple) -> _Moves:
    kept = [axis for axis in range(rank) if axis not in (*gone, *along)]
    return _Moves(spoken, dict(zip(along, rows, strict=True)), dict(zip(kept, places, strict=True)))


def _places(moves: _Moves, indices: np.ndarray, shape: tuple, sizes: tuple, rank: int, checked: bool) -> tuple[tuple, Any]:
    """An index array for every axis, shaped like what is moved, and, if checked, which of its numbers lie inside; None if all do."""
    rows = [axis for axis in range(rank) if axis not in moves.windows.values()]

    def stand(values: np.ndarray, axes: list[int]) -> np.ndarray:
        held = [1] * rank
        for axis, n in zip(axes, values.shape, strict=True):
            held[axis] = n
        return values.reshape(held)

    found, inside = [], None
    for axis, (n, size) in enumerate(zip(shape, sizes, strict=True)):
        place: Any = np.zeros([1] * rank, int)
        if axis in moves.spoken:
            first = indices[..., moves.spoken.index(axis)]
            first = (np.minimum(first, n) if first.dtype.kind == "u" and n <= np.iinfo(first.dtype).max else first).astype(int)
            clipped = np.clip(first, 0, n - size)
            if checked and (first != clipped).any():
                good = stand(first == clipped, rows)
                inside = good if inside is None else inside & good
            place = stand(clipped, rows)
        elif axis in moves.along:
            row = moves.along[axis]
            place = stand(np.arange(n), [rows[row]])
        if axis in moves.windows:
            place = place + stand(np.arange(size), [moves.windows[axis]])
        found.append(place)
    return tuple(found), inside


def _gather(equation, inputs: list) -> list:
    x, indices = map(np.asarray, inputs)
    p, d, out = equation.params, equation.params["dimension_numbers"], equation.outvars[0].aval
    moves = _moves(x.ndim, d.collapsed_slice_dims, d.operand_batching_dims, d.start_indices_batching_dims, d.start_index_map, d.offset_dims)
    places, inside = _places(moves, indices, x.shape, p["slice_sizes"], len(out.shape), p["mode"] == GatherScatterMode.FILL_OR_DROP)
    found = np.broadcast_to(x[places], out.shape)
    return [found if inside is None else np.where(inside, found, nothing(x.dtype, p["fill_value"]))]


def nothing(dtype: np.dtype, given: Any) -> np.ndarray:
    """What stands for a number from outside."""
    if given is not None:
        return np.asarray(given, dtype)
    extreme = {"i": lambda: np.iinfo(dtype).min, "u": lambda: np.iinfo(dtype).max, "b": lambda: True}
    return np.asarray(extreme.get(dtype.kind, lambda: np.nan)(), dtype)


def _scatter(put: Callable) -> Callable:
    def rule(equation, inputs: list) -> list | None:
        if equation.primitive.name == "scatter" and equation.params.get("update_jaxpr") is not None:
            return None  # a function of what is there
        x, indices, new = map(np.asarray, inputs)
        p, d = equation.params, equation.params["dimension_numbers"]
        moves = _moves(
            x.ndim,
            d.inserted_window_dims,
            d.operand_batching_dims,
            d.scatter_indices_batching_dims,
            d.scatter_dims_to_operand_dims,
            d.update_window_dims,
        )
        sizes = tuple(new.shape[moves.windows[axis]] if axis in moves.windows else 1 for axis in range(x.ndim))
        places, inside = _places(moves, indices, x.shape, sizes, new.ndim, p["mode"] != GatherScatterMode.CLIP)
        out = np.array(x)
        places = tuple(np.broadcast_to(place, new.shape) for place in places)
        if inside is not None:
            keep = np.broadcast_to(inside, new.shape)
            places, new = tuple(place[keep] for place in places), new[keep]
        put(out, places, new)
        return [out]

    return rule


RULES: dict[str, Callable] = {
    "gather": _gather,
    "scatter": _scatter(lambda out, places, new: out.__setitem__(places, new)),
    "scatter-add": _scatter(np.add.at),
}
