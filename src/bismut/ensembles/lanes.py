"""Lanes: a function of one trajectory, run for many as straight vector code.

Small arrays are poison to a compiler that vectorises over their entries: a (3, 3) product under `vmap` becomes many tiny loops. Here the jaxpr of
the one-trajectory function is evaluated with every array held as a NumPy array of *lanes*, one scalar component each, and a lane is an array
over trajectories. What was a matrix product becomes 27 multiplications of long vectors, which fuse with everything around them into one loop.

    a lane is   a constant (a NumPy scalar, folded: 0·x = 0, 1·x = x, so sparse Jacobians cost what they hold),
                a scalar shared by all trajectories (step size, time, parameters), or a vector over trajectories

The result is that of `jax.vmap` to a few ulp. A primitive that is not known here is stacked, run under `vmap`, and unstacked again; which ones, is
noted in `Program.fallbacks`.
"""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.extend.core import Literal

LARGEST = 20_000  # scalar operations up to which lanes are worth their compile time


class Program:
    """A one-trajectory function as a function of lanes."""

    def __init__(self, function: Callable, *example: Any):
        self._closed, shape = jax.make_jaxpr(function, return_shape=True)(*example)
        self._out = jax.tree.structure(shape)
        self.size = operations(self._closed.jaxpr)
        self.fallbacks: Counter[str] = Counter()

    def __call__(self, count: int, *lanes: Any):
        """Evaluate on trees of lane arrays; `count` is the number of trajectories."""
        leaves = [leaf for tree in lanes for leaf in jax.tree.leaves(tree)]
        out = _Evaluation(count, self.fallbacks).run(self._closed.jaxpr, self._closed.consts, leaves)
        return self._out.unflatten(out)


class Batch:
    """One function for many trajectories, by lanes or by vmap. Arrays over trajectories are packed once and stay packed in a loop."""

    def __init__(self, count: int, by_lanes: bool):
        self.count, self.by_lanes = count, by_lanes

    def pack(self, tree: Any) -> list:
        """A tree of arrays with trajectories first, as a flat list that a compiled loop can carry."""
        if not self.by_lanes:
            return jax.tree.leaves(tree)
        return [lane for leaf in jax.tree.leaves(split(tree)) for lane in leaf.ravel()]

    def unpack(self, flat: list, like: Any) -> Any:
        """The tree again; `like` is the tree of one trajectory."""
        leaves, structure = jax.tree.flatten(like)
        if not self.by_lanes:
            return structure.unflatten(flat)
        return join(structure.unflatten(_regrouped(flat, leaves)), self.count)

    def call(self, function: Callable, flat: list, like: Any, *shared: Any) -> Any:
        """function(tree of one trajectory, *shared) for all, with trees in and packed lists out."""
        leaves, structure = jax.tree.flatten(like)
        if not self.by_lanes:
            return jax.tree.leaves(jax.vmap(lambda tree: function(tree, *shared))(structure.unflatten(flat)))
        out = Program(lambda tree: function(tree, *shared), like)(self.count, structure.unflatten(_regrouped(flat, leaves)))
        kinds = jax.tree.leaves(jax.eval_shape(lambda tree: function(tree, *shared), like))
        return [
            jnp.broadcast_to(jnp.asarray(lane, kind.dtype), (self.count,))
            for leaf, kind in zip(jax.tree.leaves(out), kinds, strict=True)
            for lane in leaf.ravel()
        ]


def _regrouped(flat: list, like: list) -> list[np.ndarray]:
    """Lanes in a row as lane arrays of the given shapes."""
    out, k = [], 0
    for leaf in like:
        n = int(np.prod(jnp.shape(leaf)))
        out.append(_filled((n,), lambda i, k=k: flat[k + i[0]]).reshape(jnp.shape(leaf)))
        k += n
    return out


def split(tree: Any) -> Any:
    """A tree of arrays with trajectories along the first axis as a tree of lane arrays."""
    return jax.tree.map(lambda leaf: _filled(leaf.shape[1:], lambda i: leaf[(slice(None), *i)]), tree)


def join(tree: Any, count: int) -> Any:
    """The inverse of `split`."""
    return jax.tree.map(lambda leaf: _stack(leaf, count), tree)


def operations(jaxpr) -> int:
    """The number of scalar operations a jaxpr stands for, a loop counted once."""
    total = 0
    for equation in jaxpr.eqns:
        inner = [p for value in equation.params.values() for p in (value if isinstance(value, tuple | list) else (value,))]
        nested = [getattr(p, "jaxpr", p) for p in inner if hasattr(getattr(p, "jaxpr", p), "eqns")]
        if nested:
            total += sum(operations(j) for j in nested)
        elif equation.primitive.name == "dot_general":
            (left, _), _ = equation.params["dimension_numbers"]
            total += equation.outvars[0].aval.size * int(np.prod([equation.invars[0].aval.shape[d] for d in left]))
        else:
            total += sum(getattr(v.aval, "size", 1) for v in equation.outvars)
    return total


class _Evaluation:
    """One walk through a jaxpr."""

    def __init__(self, count: int, fallbacks: Counter[str]):
        self.count, self.fallbacks, self.memo = count, fallbacks, {}

    def run(self, jaxpr, consts, arguments: list[np.ndarray]) -> list[np.ndarray]:
        env: dict[Any, np.ndarray] = dict(zip(jaxpr.constvars, map(_lanes_of, consts), strict=True))
        env.update(zip(jaxpr.invars, arguments, strict=True))
        read = lambda v: _lanes_of(v.val) if isinstance(v, Literal) else env[v]
        for equation in jaxpr.eqns:
            outputs = self.apply(equation, [read(v) for v in equation.invars])
            env.update(zip(equation.outvars, outputs, strict=True))
        return [read(v) for v in jaxpr.outvars]

    def apply(self, equation, inputs: list[np.ndarray]) -> list[np.ndarray]:
        name, params = equation.primitive.name, equation.params
        if name in _ELEMENTWISE:
            return [self.each(name, partial(_ELEMENTWISE[name], **_wanted(name, params)), inputs, params)]
        if name in _STRUCTURAL:
            out = _STRUCTURAL[name](inputs, params)
            return out if isinstance(out, list) else [out]
        if name in _REDUCTIONS:
            return [self.reduce(_REDUCTIONS[name], inputs[0], params["axes"])]
        special = getattr(self, f"_{name}", None)
        if special is not None:
            done = special(inputs, params)
            if done is not None:
                return done
        inner = params.get("jaxpr") or params.get("call_jaxpr")
        if name in _CALLS and inner is not None:
            closed = inner if hasattr(inner, "consts") else None
            return self.run(closed.jaxpr if closed else inner, closed.consts if closed else (), inputs)
        return self.fallback(equation, inputs)

    def each(self, name: str, operation: Callable, inputs: list[np.ndarray], params) -> np.ndarray:
        arrays = np.broadcast_arrays(*inputs) if len(inputs) > 1 else inputs
        out = np.empty(arrays[0].shape, object)
        settings = str(_wanted(name, params))
        for i in np.ndindex(out.shape):
            lanes = [a[i] for a in arrays]
            # Equal operations on the same lanes are done once; the lanes are kept beside the result so that their ids stay theirs.
            key = (name, settings, *(("c", lane.dtype.str, lane.item()) if _constant(lane) else id(lane) for lane in lanes))
            if key not in self.memo:
                self.memo[key] = (operation(*lanes), lanes)
            out[i] = self.memo[key][0]
        return out

    def reduce(self, operation: Callable, x: np.ndarray, axes) -> np.ndarray:
        for axis in sorted(axes, reverse=True):
            parts = [_take(x, k, axis) for k in range(x.shape[axis])]
            total = parts[0]
            for part in parts[1:]:
                total = _filled(total.shape, lambda i, a=total, b=part: operation(a[i], b[i]))
            x = total
        return x

    def _dot_general(self, inputs, params):
        (lc, rc), (lb, rb) = params["dimension_numbers"]
        a, b = inputs
        lf = [d for d in range(a.ndim) if d not in (*lc, *lb)]
        rf = [d for d in range(b.ndim) if d not in (*rc, *rb)]
        batch, depth = [a.shape[d] for d in lb], int(np.prod([a.shape[d] for d in lc]))
        A = a.transpose([*lb, *lf, *lc]).reshape(*batch, -1, depth)
        B = b.transpose([*rb, *rc, *rf]).reshape(*batch, depth, -1)

        def entry(i):
            *g, r, c = i
            total: Any = _zero(params.get("preferred_element_type"))
            for k in range(depth):
                total = _add(total, _mul(A[(*g, r, k)], B[(*g, k, c)]))
            return total

        out = _filled((*batch, A.shape[-2], B.shape[-1]), entry)
        return [out.reshape([*batch, *(a.shape[d] for d in lf), *(b.shape[d] for d in rf)])]

    def _select_n(self, inputs, params):
        which, *cases = inputs
        if len(cases) != 2 or np.ndim(which) not in (0, cases[0].ndim):
            return None
        which = np.broadcast_to(which, cases[0].shape)
        return [_filled(cases[0].shape, lambda i: _select(which[i], cases[0][i], cases[1][i]))]

    def _optimization_barrier(self, inputs, params):
        flat = [lane for x in inputs for lane in x.ravel()]
        held = iter(jax.lax.optimization_barrier([lane for lane in flat if not _constant(lane)]))
        return _regrouped([lane if _constant(lane) else next(held) for lane in flat], inputs)

    def _while(self, inputs, params):
        """The loop runs until every trajectory has finished; those that have keep what they had, as under vmap."""
        nc, nb = params["cond_nconsts"], params["body_nconsts"]
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]
        cond_consts, body_consts, start = inputs[:nc], inputs[nc : nc + nb], inputs[nc + nb :]
        types = [v.aval.dtype for v in body.jaxpr.outvars]
        full = lambda x, dtype: jnp.broadcast_to(jnp.asarray(x, dtype), (self.count,))
        pack = lambda arrays: [full(x, t) for array, t in zip(arrays, types, strict=True) for x in array.ravel()]

        like = [np.empty(x.shape) for x in start]

        def inner(jaxpr, consts, flat):
            return _Evaluation(self.count, self.fallbacks).run(jaxpr.jaxpr, jaxpr.consts, [*consts, *_regrouped(flat, like)])

        def going(flat):
            return full(inner(cond, cond_consts, flat)[0][()], bool)

        def step(carry):
            flat, on = carry
            new = [jnp.where(on, a, b) for a, b in zip(pack(inner(body, body_consts, flat)), flat, strict=True)]
            return new, going(new)

        first = pack(start)
        flat, _ = jax.lax.while_loop(lambda carry: jnp.any(carry[1]), step, (first, going(first)))
        return _regrouped(flat, like)

    def fallback(self, equation, inputs: list[np.ndarray]) -> list[np.ndarray]:
        """Stack, run under vmap, unstack."""
        self.fallbacks[equation.primitive.name] += 1
        stacked = [_stack(x, self.count, v.aval.dtype) for x, v in zip(inputs, equation.invars, strict=True)]

        def bind(*arguments):
            out = equation.primitive.bind(*arguments, **equation.primitive.get_bind_params(equation.params))
            return tuple(out) if equation.primitive.multiple_results else (out,)

        return [split(out) for out in jax.vmap(bind)(*stacked)]


# Lanes and constants.


def _constant(lane) -> bool:
    return isinstance(lane, np.generic)


def _filled(shape, entry: Callable) -> np.ndarray:
    out = np.empty(tuple(shape), object)
    for i in np.ndindex(out.shape):
        out[i] = entry(i)
    return out


def _lanes_of(value) -> np.ndarray:
    """A value that is the same for all trajectories, as an array of lanes."""
    if isinstance(value, Tracer):
        return _filled(value.shape, lambda i: value[i] if i else value)
    value = np.asarray(value)
    return _filled(value.shape, lambda i: value[i])


def _take(x: np.ndarray, k: int, axis: int) -> np.ndarray:
    part = x[(slice(None),) * axis + (k,)]
    return part if isinstance(part, np.ndarray) else _filled((), lambda _: part)


def _stack(x: np.ndarray, count: int, dtype=None) -> jax.Array:
    lanes = [jnp.broadcast_to(jnp.asarray(lane, dtype), (count,)) for lane in x.ravel()]
    if not lanes:
        return jnp.zeros((count, *x.shape), dtype)
    return jnp.stack(lanes, -1).reshape(count, *x.shape)


def _zero(dtype) -> np.generic:
    return np.dtype(dtype or float).type(0)


def _is(lane, value):
    return _constant(lane) and lane == value


def _add(a, b):
    return b if _is(a, 0) else a if _is(b, 0) else a + b


def _sub(a, b):
    return a if _is(b, 0) else -b if _is(a, 0) else a - b


def _mul(a, b):
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
        return jnp.ones_like(a) if not _constant(a) else np.ones_like(a)[()]
    if y < 0:
        return 1 / _power(a, -y)
    half = _power(a, y // 2) if y > 1 else None
    return a if half is None else _mul(half, half) if y % 2 == 0 else _mul(_mul(half, half), a)


def _select(which, a, b):
    if _constant(which):
        return b if which else a
    return a if a is b else jnp.where(which, b, a)


def _convert(a, new_dtype):
    return np.dtype(new_dtype).type(a) if _constant(a) else a.astype(new_dtype)


def _either(on_lanes: Callable, on_constants: Callable) -> Callable:
    """A function of lanes that is worked out at once where all of them are constants."""
    return lambda *a, **k: np.asarray(on_constants(*a, **k))[()] if all(map(_constant, a)) else on_lanes(*a, **k)


def _same(name: str, constant: Callable | None = None) -> Callable:
    return _either(getattr(jax.lax, name), constant or getattr(np, name))


def _binary(name: str, constant: Callable) -> Callable:
    operation = getattr(jnp, name)
    return _either(operation, constant)


_ELEMENTWISE: dict[str, Callable] = {
    "add": _add,
    "add_any": _add,
    "sub": _sub,
    "mul": _mul,
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
    "square": lambda a: _mul(a, a),
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
    "round": lambda a, rounding_method: np.round(a) if _constant(a) and int(rounding_method) == 1 else jax.lax.round(a, rounding_method),
    "integer_pow": _power,
    "convert_element_type": _convert,
    "clamp": lambda low, a, high: jnp.clip(a, low, high),
    "copy": lambda a: a,
    "copy_p": lambda a: a,
    "stop_gradient": lambda a: a,
    "real": lambda a: a,
    "reduce_precision": lambda a: a,
}

_WANTED = {"integer_pow": ("y",), "convert_element_type": ("new_dtype",), "round": ("rounding_method",)}


def _wanted(name: str, params) -> dict:
    return {key: params[key] for key in _WANTED.get(name, ())}


_REDUCTIONS: dict[str, Callable] = {
    "reduce_sum": _add,
    "reduce_prod": _mul,
    "reduce_max": _ELEMENTWISE["max"],
    "reduce_min": _ELEMENTWISE["min"],
    "reduce_and": _ELEMENTWISE["and"],
    "reduce_or": _ELEMENTWISE["or"],
}

_CALLS = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "remat", "checkpoint")


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
    out = _filled(shape, lambda i: value)
    for i in np.ndindex(x.shape):
        place = tuple(low + a * (1 + gap) for a, (low, _, gap) in zip(i, config, strict=True))
        if all(0 <= a < n for a, n in zip(place, shape, strict=True)):
            out[place] = x[i]
    return out


def _iota(inputs, params):
    n, d = params["shape"], params["dimension"]
    values = np.broadcast_to(np.arange(n[d]).reshape([-1 if k == d else 1 for k in range(len(n))]), n)
    return _lanes_of(values.astype(params["dtype"]))


_STRUCTURAL: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast,
    "reshape": lambda x, p: x[0].reshape(p["new_sizes"]),
    "squeeze": lambda x, p: x[0].reshape([d for k, d in enumerate(x[0].shape) if k not in p["dimensions"]]),
    "expand_dims": lambda x, p: np.expand_dims(x[0], p["dimensions"]),
    "transpose": lambda x, p: x[0].transpose(p["permutation"]),
    "rev": lambda x, p: np.flip(x[0], p["dimensions"]),
    "slice": lambda x, p: x[0][tuple(map(slice, p["start_indices"], p["limit_indices"], p["strides"] or [1] * x[0].ndim))],
    "concatenate": lambda x, p: np.concatenate(x, p["dimension"]),
    "stack": lambda x, p: np.stack(x, p.get("axis", p.get("dimension", 0))),
    "unstack": lambda x, p: [_take(x[0], k, p.get("axis", 0)) for k in range(x[0].shape[p.get("axis", 0)])],
    "split": lambda x, p: np.split(x[0], np.cumsum(p["sizes"])[:-1], p["axis"]),
    "pad": _pad,
    "iota": _iota,
}
