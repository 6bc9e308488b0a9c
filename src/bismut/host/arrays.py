"""Whole arrays: (equation, inputs) ↦ outputs, with what the equation says of shapes; None for what is left to JAX."""

import string
from collections.abc import Callable
from typing import Any

import numpy as np

from bismut.host.gathering import RULES as GATHERING


def _bits(equation, inputs: list) -> list:
    """One number as several shorter ones along a last axis, the lowest bits first; or these as one."""
    x, out = np.ascontiguousarray(inputs[0]), _result(equation)
    return [x.view(out.dtype).reshape(out.shape)]


def _padded(equation, inputs: list) -> list | None:
    x, value = inputs
    config = equation.params["padding_config"]
    if min([0, *(min(low, high) for low, high, _ in config)]) < 0:
        return None
    out = np.full(_result(equation).shape, value, x.dtype)
    places = zip(config, np.shape(x), strict=True)
    out[tuple(slice(low, low + max((n - 1) * (inner + 1) + 1, 0), inner + 1) for (low, _, inner), n in places)] = x
    return [out]


def _result(equation) -> Any:
    return equation.outvars[0].aval


def _broadcast(equation, inputs: list) -> list:
    shape, axes = equation.params["shape"], equation.params["broadcast_dimensions"]
    held = [1] * len(shape)
    for axis, n in zip(axes, np.shape(inputs[0]), strict=True):
        held[axis] = n
    return [np.broadcast_to(np.reshape(inputs[0], held), shape)]


def _dot(equation, inputs: list) -> list:
    (of_a, of_b), (batch_a, batch_b) = equation.params["dimension_numbers"]
    letters = iter(string.ascii_letters)
    names = [[next(letters) for _ in np.shape(x)] for x in inputs]
    for a, b in (*zip(of_a, of_b, strict=True), *zip(batch_a, batch_b, strict=True)):
        names[1][b] = names[0][a]
    free = lambda one, gone: [letter for k, letter in enumerate(one) if k not in gone]
    out = [names[0][k] for k in batch_a] + free(names[0], (*of_a, *batch_a)) + free(names[1], (*of_b, *batch_b))
    kind = _result(equation).dtype
    found = np.einsum(f"{''.join(names[0])},{''.join(names[1])}->{''.join(out)}", *(np.asarray(x, kind) for x in inputs))
    return [np.asarray(found, kind)]


def _select(equation, inputs: list) -> list:
    which, *cases = inputs
    return [np.where(which, cases[1], cases[0]) if len(cases) == 2 else np.choose(which, cases)]


def _slice(equation, inputs: list) -> list:
    p = equation.params
    steps = p["strides"] or [1] * len(p["start_indices"])
    return [inputs[0][tuple(map(slice, p["start_indices"], p["limit_indices"], steps))]]


def _part(x: np.ndarray, begin: list, shape: tuple) -> tuple:
    """The places of a part that is moved inside where it would stick out."""
    first = [int(np.clip(int(b), 0, n - m)) for b, n, m in zip(begin, np.shape(x), shape, strict=True)]
    return tuple(slice(b, b + m) for b, m in zip(first, shape, strict=True))


def _updated(equation, inputs: list) -> list:
    x, new, *begin = inputs
    out = np.array(x)
    out[_part(x, begin, np.shape(new))] = new
    return [out]


def _iota(equation, inputs: list) -> list:
    p = equation.params
    line = np.arange(p["shape"][p["dimension"]], dtype=p["dtype"])
    return [np.broadcast_to(line.reshape([-1 if k == p["dimension"] else 1 for k in range(len(p["shape"]))]), p["shape"])]


def _reduced(function: Callable) -> Callable:
    return lambda equation, inputs: [np.asarray(function(inputs[0], axis=tuple(equation.params["axes"])), _result(equation).dtype)]


def _extreme(function: Callable, least: bool) -> Callable:
    """The largest or the smallest; of nothing, what nothing is less or more than."""

    def extreme(equation, inputs: list) -> list:
        x = inputs[0]
        info: Any = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
        bounds = (info.min, info.max) if info else (False, True) if x.dtype.kind == "b" else (-np.inf, np.inf)
        axes = tuple(equation.params["axes"])
        found = np.asarray(function(x, axis=axes, initial=bounds[0 if least else 1]), _result(equation).dtype)
        if x.dtype.kind == "f" and (found == 0).any():  # of two zeros +0 is the larger, and NumPy takes any
            positive = np.any((x == 0) & ~np.signbit(x), axes), np.any((x == 0) & np.signbit(x), axes)
            found = np.where(found == 0, np.where(positive[0] if least else ~positive[1], x.dtype.type(0), x.dtype.type(-0.0)), found)
        return [found]

    return extreme


RULES: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast,
    "dot_general": _dot,
    "select_n": _select,
    "slice": _slice,
    "dynamic_slice": lambda e, x: [x[0][_part(x[0], x[1:], e.params["slice_sizes"])]],
    "dynamic_update_slice": _updated,
    "iota": _iota,
    "transpose": lambda e, x: [np.transpose(x[0], e.params["permutation"])],
    "stack": lambda e, x: [np.stack(x, e.params["axis"])],
    "concatenate": lambda e, x: [np.concatenate(x, e.params["dimension"])],
    "rev": lambda e, x: [np.flip(x[0], e.params["dimensions"])],
    "split": lambda e, x: np.split(x[0], np.cumsum(e.params["sizes"])[:-1], e.params["axis"]),
    **{name: lambda e, x: [np.reshape(x[0], _result(e).shape)] for name in ("reshape", "squeeze", "expand_dims")},
    **{f"reduce_{word}": _reduced(function) for word, function in {"sum": np.sum, "prod": np.prod}.items()},
    **{f"reduce_{word}": _reduced(getattr(np, f"bitwise_{word}").reduce) for word in ("and", "or", "xor")},
    "reduce_max": _extreme(np.max, least=True),
    "reduce_min": _extreme(np.min, least=False),
    "optimization_barrier": lambda e, x: x,
    "bitcast_convert_type": _bits,
    "pad": _padded,
    "unstack": lambda e, x: list(np.moveaxis(x[0], e.params["axis"], 0)),
    **GATHERING,
}
