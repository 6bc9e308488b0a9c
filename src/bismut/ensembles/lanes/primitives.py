"""Primitives on lanes: what each does to NumPy arrays whose entries are constants or vectors over trajectories.

Constants are folded as they are met: 0·x = 0, 1·x = x, 0 + x = x. (So 0·∞ = 0 here; a step in which that matters has failed already.)
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer


def constant(lane) -> bool:
    return isinstance(lane, np.generic)


def filled(shape, entry: Callable) -> np.ndarray:
    out = np.empty(tuple(shape), object)
    for i in np.ndindex(out.shape):
        out[i] = entry(i)
    return out


def lanes_of(value) -> np.ndarray:
    """A value that is the same for all trajectories, as an array of lanes."""
    if isinstance(value, Tracer):
        return filled(value.shape, lambda i: value[i] if i else value)
    value = np.asarray(value)
    return filled(value.shape, lambda i: value[i])


def take(x: np.ndarray, k: int, axis: int) -> np.ndarray:
    part = x[(slice(None),) * axis + (k,)]
    return part if isinstance(part, np.ndarray) else filled((), lambda _: part)


def stack(x: np.ndarray, count: int, dtype=None) -> jax.Array:
    lanes = [jnp.broadcast_to(jnp.asarray(lane, dtype), (count,)) for lane in x.ravel()]
    if not lanes:
        return jnp.zeros((count, *x.shape), dtype)
    return jnp.stack(lanes, -1).reshape(count, *x.shape)


def zero(dtype) -> np.generic:
    return np.dtype(dtype or float).type(0)


def _is(lane, value):
    return constant(lane) and lane == value


def add(a, b):
    return b if _is(a, 0) else a if _is(b, 0) else a + b


def _sub(a, b):
    return a if _is(b, 0) else -b if _is(a, 0) else a - b


def mul(a, b):
    for x, y in ((a, b), (b, a)):
        if _is(x, 0):
            return x
        if _is(x, 1):
            return y
        if _is(x, -1) and not np.issubdtype(x.dtype, np.unsignedinteger):
            return -y
    return a * b


def _div(a, b):
    return a if _is(a, 0) or _is(b, 1) else a / b if jnp.issubdtype(jnp.result_type(a), jnp.floating) else jax.lax.div(a, b)


def _power(a, y):
    if y == 0:
        return jnp.ones_like(a) if not constant(a) else np.ones_like(a)[()]
    if y < 0:
        return 1 / _power(a, -y)
    half = _power(a, y // 2) if y > 1 else None
    return a if half is None else mul(half, half) if y % 2 == 0 else mul(mul(half, half), a)


def select(which, a, b):
    if constant(which):
        return b if which else a
    return a if a is b else jnp.where(which, b, a)


def _convert(a, new_dtype):
    return np.dtype(new_dtype).type(a) if constant(a) else a.astype(new_dtype)


def _either(on_lanes: Callable, on_constants: Callable) -> Callable:
    """A function of lanes that is worked out at once where all of them are constants."""
    return lambda *a, **k: np.asarray(on_constants(*a, **k))[()] if all(map(constant, a)) else on_lanes(*a, **k)


def _same(name: str, constant: Callable | None = None) -> Callable:
    return _either(getattr(jax.lax, name), constant or getattr(np, name))


def _binary(name: str, constant: Callable) -> Callable:
    operation = getattr(jnp, name)
    return _either(operation, constant)


ELEMENTWISE: dict[str, Callable] = {
    "add": add,
    "add_any": add,
    "sub": _sub,
    "mul": mul,
    "div": _div,
    "neg": lambda a: -a,
    "max": _binary("maximum", np.maximum),
    "min": _binary("minimum", np.minimum),
    "rem": _binary("fmod", np.fmod),
    "pow": _binary("power", np.power),
    "atan2": _binary("arctan2", np.arctan2),
    "nextafter": _binary("nextafter", np.nextafter),
    "eq": _binary("equal", np.equal),
    "ne": _binary("not_equal", np.not_equal),
    "lt": _binary("less", np.less),
    "le": _binary("less_equal", np.less_equal),
    "gt": _binary("greater", np.greater),
    "ge": _binary("greater_equal", np.greater_equal),
    "and": _binary("bitwise_and", np.bitwise_and),
    "or": _binary("bitwise_or", np.bitwise_or),
    "xor": _binary("bitwise_xor", np.bitwise_xor),
    "not": _binary("bitwise_not", np.bitwise_not),
    "abs": _same("abs"),
    "sign": _same("sign"),
    "sqrt": _same("sqrt"),
    "rsqrt": _same("rsqrt", lambda a: 1 / np.sqrt(a)),
    "cbrt": _same("cbrt"),
    "square": lambda a: mul(a, a),
    "exp": _same("exp"),
    "exp2": _same("exp2"),
    "expm1": _same("expm1"),
    "log": _same("log"),
    "log1p": _same("log1p"),
    "sin": _same("sin"),
    "cos": _same("cos"),
    "tan": _same("tan"),
    "asin": _same("asin", np.arcsin),
    "acos": _same("acos", np.arccos),
    "atan": _same("atan", np.arctan),
    "sinh": _same("sinh"),
    "cosh": _same("cosh"),
    "tanh": _same("tanh"),
    "asinh": _same("asinh", np.arcsinh),
    "acosh": _same("acosh", np.arccosh),
    "atanh": _same("atanh", np.arctanh),
    "floor": _same("floor"),
    "ceil": _same("ceil"),
    "is_finite": _same("is_finite", np.isfinite),
    "round": lambda a, rounding_method: np.round(a) if constant(a) and int(rounding_method) == 1 else jax.lax.round(a, rounding_method),
    "integer_pow": _power,
    "convert_element_type": _convert,
    "clamp": lambda low, a, high: jnp.clip(a, low, high),
    "copy": lambda a: a,
    "copy_p": lambda a: a,
    "stop_gradient": lambda a: a,
    "reduce_precision": lambda a: a,
}

_WANTED = {"integer_pow": ("y",), "convert_element_type": ("new_dtype",), "round": ("rounding_method",)}


def wanted(name: str, params) -> dict:
    return {key: params[key] for key in _WANTED.get(name, ())}


REDUCTIONS: dict[str, Callable] = {
    "reduce_sum": add,
    "reduce_prod": mul,
    "reduce_max": ELEMENTWISE["max"],
    "reduce_min": ELEMENTWISE["min"],
    "reduce_and": ELEMENTWISE["and"],
    "reduce_or": ELEMENTWISE["or"],
}

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
    for leaf in like:
        n = int(np.prod(jnp.shape(leaf)))
        out.append(filled((n,), lambda i, k=k: flat[k + i[0]]).reshape(jnp.shape(leaf)))
        k += n
    return out
