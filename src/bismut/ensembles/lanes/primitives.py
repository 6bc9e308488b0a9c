"""Primitives on lanes: what each does to NumPy arrays whose entries are constants or nodes of the graph.

Constants are folded as they are met: 0·x = 0, 1·x = x, 0 + x = x. (So 0·∞ = 0 here; a step in which that matters has failed already.)
"""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from bismut.ensembles.lanes import elementary
from bismut.ensembles.lanes.graph import Node, constant, leaf


def filled(shape, entry: Callable) -> np.ndarray:
    out = np.empty(tuple(shape), object)
    for i in np.ndindex(out.shape):
        out[i] = entry(i)
    return out


def lanes_of(value) -> np.ndarray:
    """A value that is the same for all trajectories, as an array of lanes."""
    if isinstance(value, Tracer):
        return filled(value.shape, lambda i: leaf(value[i] if i else value))
    value = np.asarray(value)
    return filled(value.shape, lambda i: value[i])


def take(x: np.ndarray, k: int, axis: int) -> np.ndarray:
    part = x[(slice(None),) * axis + (k,)]
    return part if isinstance(part, np.ndarray) else filled((), lambda _: part)


def stacked(values: list, shape: tuple[int, ...], count: int, dtype=None) -> jax.Array:
    """Values of lanes as one array with trajectories first."""
    lanes = [jnp.broadcast_to(jnp.asarray(value, dtype), (count,)) for value in values]
    if not lanes:
        return jnp.zeros((count, *shape), dtype)
    return jnp.stack(lanes, -1).reshape(count, *shape)


def _is(lane, value):
    return constant(lane) and lane == value


def _add(a, b):
    return b if _is(a, 0) else a if _is(b, 0) else None


def _sub(a, b):
    return a if _is(b, 0) else None


def _mul(a, b):
    for x, y in ((a, b), (b, a)):
        if _is(x, 0):
            return x
        if _is(x, 1):
            return y
    return None


def _div(a, b):
    return a if _is(a, 0) or _is(b, 1) else None


def _select(which, a, b):
    return (b if which else a) if constant(which) else a if a is b else None


# What is known of a result before anything is computed; None where nothing is.
FOLDS: dict[str, Callable] = {"add": _add, "add_any": _add, "sub": _sub, "mul": _mul, "div": _div, "select_n": _select}


def _power(a, y):
    if y < 0:
        return 1 / _power(a, -y)
    if y == 0:
        return jnp.ones_like(a)
    half = _power(a, y // 2) if y > 1 else None
    return a if half is None else half * half if y % 2 == 0 else half * half * a


def _quotient(a, b):
    return a / b if jnp.issubdtype(jnp.result_type(a), jnp.floating) or jnp.iscomplexobj(a) else jax.lax.div(a, b)


def _clamp(low, a, high):
    return jnp.clip(a, low, high)


def _same(a):
    return a


# Functions of values, which are vectors over trajectories or numbers shared by all.
ELEMENTWISE: dict[str, Callable] = {
    "add": jnp.add,
    "add_any": jnp.add,
    "sub": jnp.subtract,
    "mul": jnp.multiply,
    "div": _quotient,
    "neg": jnp.negative,
    "max": jnp.maximum,
    "min": jnp.minimum,
    "rem": jnp.fmod,
    "pow": jnp.power,
    "atan2": jnp.arctan2,
    "nextafter": jnp.nextafter,
    "eq": jnp.equal,
    "ne": jnp.not_equal,
    "lt": jnp.less,
    "le": jnp.less_equal,
    "gt": jnp.greater,
    "ge": jnp.greater_equal,
    "and": jnp.bitwise_and,
    "or": jnp.bitwise_or,
    "xor": jnp.bitwise_xor,
    "not": jnp.bitwise_not,
    "square": jnp.square,
    "integer_pow": _power,
    "convert_element_type": lambda a, new_dtype: jnp.asarray(a).astype(new_dtype),
    "clamp": _clamp,
    "round": jax.lax.round,
    "sin": elementary.sin,
    "cos": elementary.cos,
    "tan": elementary.tan,
    "select_n": lambda which, a, b: jnp.where(which, b, a),
    **dict.fromkeys(("copy", "copy_p", "stop_gradient", "reduce_precision"), _same),
    **{name: getattr(jax.lax, name) for name in ("abs", "sign", "sqrt", "rsqrt", "cbrt", "floor", "ceil", "is_finite")},
    **{name: getattr(jax.lax, name) for name in ("exp", "exp2", "expm1", "log", "log1p", "asin", "acos", "atan")},
    **{name: getattr(jax.lax, name) for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
}

_WANTED = {"integer_pow": ("y",), "convert_element_type": ("new_dtype",), "round": ("rounding_method",)}

# Costs in multiplications, measured on vectors that stay in the cache; everything else is 1.
COSTS = {"div": 6, "sqrt": 6, "rsqrt": 8, "pow": 80, "atan2": 80, "sin": 25, "cos": 25, "tan": 35, "cbrt": 60, "erf_inv": 60}
COSTS |= dict.fromkeys(("exp", "exp2", "log", "tanh", "log1p", "expm1"), 20)
COSTS |= dict.fromkeys(("asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh"), 60)


def wanted(name: str, params) -> dict:
    return {key: params[key] for key in _WANTED.get(name, ())}


_FOLDED = {
    **dict.fromkeys(("add", "add_any"), np.add),
    "sub": np.subtract,
    "mul": np.multiply,
    "neg": np.negative,
    "max": np.maximum,
    "min": np.minimum,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "square": np.square,
    "convert_element_type": lambda a, new_dtype: np.dtype(new_dtype).type(a),
}


def operate(name: str, lanes: list, settings: dict):
    """One operation on lanes: folded if constants allow it, worked out at once if all are constants, a node otherwise."""
    folded = FOLDS[name](*lanes) if name in FOLDS else None
    if folded is not None:
        return folded
    function = ELEMENTWISE[name]
    if all(map(constant, lanes)):
        with np.errstate(all="ignore"), jax.ensure_compile_time_eval():
            return np.asarray(_FOLDED.get(name, function)(*lanes, **settings))[()]
    return Node(partial(function, **settings) if settings else function, tuple(lanes), COSTS.get(name, 1))


REDUCTIONS = {
    "reduce_sum": "add",
    "reduce_prod": "mul",
    "reduce_max": "max",
    "reduce_min": "min",
    "reduce_and": "and",
    "reduce_or": "or",
}
NEUTRAL = {"add": 0, "mul": 1, "max": -np.inf, "min": np.inf, "and": True, "or": False}  # what each makes of nothing

CALLS = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "remat", "checkpoint")


def _broadcast(inputs, params):
    x, shape = inputs[0], params["shape"]
    held = [1] * len(shape)
    for k, d in enumerate(params["broadcast_dimensions"]):
        held[d] = x.shape[k]
    return np.broadcast_to(x.reshape(held), shape)


def _pad(inputs, params):
    x, value = inputs[0], inputs[1][()]
    config = params["padding_config"]
    shape = [low + high + d + max(d - 1, 0) * gap for (low, high, gap), d in zip(config, x.shape, strict=True)]
    out = filled(shape, lambda i: value)
    for i in np.ndindex(x.shape):
        place = tuple(low + a * (1 + gap) for a, (low, _, gap) in zip(i, config, strict=True))
        if all(0 <= a < n for a, n in zip(place, shape, strict=True)):
            out[place] = x[i]
    return out


def _iota(inputs, params):
    n, d = params["shape"], params["dimension"]
    values = np.broadcast_to(np.arange(n[d]).reshape([-1 if k == d else 1 for k in range(len(n))]), n)
    return lanes_of(values.astype(params["dtype"]))


STRUCTURAL: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast,
    "reshape": lambda x, p: x[0].reshape(p["new_sizes"]),
    "squeeze": lambda x, p: x[0].reshape([d for k, d in enumerate(x[0].shape) if k not in p["dimensions"]]),
    "expand_dims": lambda x, p: np.expand_dims(x[0], p["dimensions"]),
    "transpose": lambda x, p: x[0].transpose(p["permutation"]),
    "rev": lambda x, p: np.flip(x[0], p["dimensions"]),
    "slice": lambda x, p: x[0][tuple(map(slice, p["start_indices"], p["limit_indices"], p["strides"] or [1] * x[0].ndim))],
    "concatenate": lambda x, p: np.concatenate(x, p["dimension"]),
    "stack": lambda x, p: np.stack(x, p.get("axis", p.get("dimension", 0))),
    "unstack": lambda x, p: [take(x[0], k, p.get("axis", 0)) for k in range(x[0].shape[p.get("axis", 0)])],
    "split": lambda x, p: np.split(x[0], np.cumsum(p["sizes"])[:-1], p["axis"]),
    "pad": _pad,
    "iota": _iota,
}


def regrouped(flat: list, like: list) -> list[np.ndarray]:
    """Lanes in a row as lane arrays of the given shapes."""
    out, k = [], 0
    for shape in map(jnp.shape, like):
        n = int(np.prod(shape))
        out.append(filled((n,), lambda i, k=k: flat[k + i[0]]).reshape(shape))
        k += n
    return out
