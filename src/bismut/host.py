"""A function evaluated once, here and now, without compiling.

JAX compiles every operation when it meets it first, 20 ms each; a check that evaluates a function at one point would take a second, nearly all of it
compiling. So the function is traced, and its jaxpr carried out in NumPy, equation by equation. What has no line in the tables is left to JAX.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from bismut.gathering import RULES as _GATHERING
from bismut.keys import KEY, understood, unwrapped, wrapped
from bismut.keys import RULES as _KEYS
from bismut.tracing import traced

Given = list[np.ndarray]
Method = TypeVar("Method", bound=Callable)


def evaluate(function: Callable, *arguments: Any) -> Any:
    """function(*arguments); as JAX does it where something is traced."""
    return repeated(function)(*arguments)


def repeated(function: Callable) -> Callable:
    """The function evaluated so, traced once for arguments of the same shapes: for those who ask a few times."""
    known: dict[Any, tuple[ClosedJaxpr, Any]] = {}

    def call(*arguments: Any) -> Any:
        if traced(arguments):
            return function(*jax.tree.map(jnp.asarray, arguments))
        leaves, structure = jax.tree.flatten(arguments)
        key = structure, tuple(jax.typeof(leaf) for leaf in leaves)
        if key not in known:
            closed, shapes = jax.make_jaxpr(function, return_shape=True)(*arguments)
            if traced(closed.consts):
                return function(*jax.tree.map(jnp.asarray, arguments))
            known[key] = closed, jax.tree.structure(shapes)
        closed, structure = known[key]
        with np.errstate(all="ignore"), jax.ensure_compile_time_eval():  # here and now, also where something else is being traced
            found = _run(closed, [_known(leaf, aval.dtype) for leaf, aval in zip(leaves, closed.in_avals, strict=True)])
            return jax.tree.unflatten(structure, _given(found))  # jnp.asarray would compile

    return call


def at_once(method: Method) -> Method:
    """A method that is evaluated so where its arguments are known, and is what it was where anything is traced."""

    @wraps(method)
    def call(self, *arguments, **named):
        arrays = [i for i, argument in enumerate(arguments) if not isinstance(argument, str | int | float | type | np.dtype | None)]
        if traced((self, arguments, named)):
            return method(self, *arguments, **named)

        def function(*given):
            whole = list(arguments)
            for i, argument in zip(arrays, given, strict=True):
                whole[i] = argument
            return method(self, *whole, **named)

        return evaluate(function, *(arguments[i] for i in arrays))

    return cast(Method, call)


def _run(closed: ClosedJaxpr, arguments: list) -> list:
    jaxpr = closed.jaxpr
    env: dict[Any, Any] = dict(zip(jaxpr.constvars, map(_known, closed.consts), strict=True))
    env.update(zip(jaxpr.invars, arguments, strict=True))
    read = lambda v: np.asarray(v.val, cast(Any, v.aval).dtype) if isinstance(v, Literal) else env[v]
    for equation in jaxpr.eqns:
        inputs = [read(v) for v in equation.invars]
        env.update(zip(equation.outvars, _outputs(equation, inputs), strict=True))
    return [read(v) for v in jaxpr.outvars]


def _known(value: Any, dtype: Any = None) -> Any:
    """A constant; what NumPy has no type for stays JAX's."""
    if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.extended):
        return unwrapped(value) if understood(value.dtype) else value
    return np.asarray(value, dtype)


def _is_key(value: Any) -> bool:
    return getattr(value, "dtype", None) == KEY


def _given(values: list) -> list:
    """What JAX makes of values."""
    plain = jax.device_put([0 if _is_key(value) else value for value in values])
    return [wrapped(value) if _is_key(value) else there for value, there in zip(values, plain, strict=True)]


def _outputs(equation, inputs: list) -> list:
    name, params = equation.primitive.name, equation.params
    if name in _EACH and all(np.asarray(x).dtype.kind in _EACH[name][1] for x in inputs):
        return [_EACH[name][0](*inputs)]
    if name in _MOVING:
        return _MOVING[name](equation, inputs)
    if name in _CONTROL:
        return _CONTROL[name](params, inputs)
    if name in _KEYS and any(understood(v.aval.dtype) for v in (*equation.invars, *equation.outvars)):
        return _KEYS[name](equation, inputs)
    if name in ("each", "pairs"):
        shapes = tuple((np.shape(x), np.asarray(x).dtype) for x in inputs)
        return _run(_expanded(equation.primitive, params["jaxpr"], params["layout"], shapes), inputs)
    return _by_jax(equation, inputs)


def _by_jax(equation, inputs: list) -> list:
    inputs = [wrapped(x) if _is_key(x) else x for x in inputs]
    found = equation.primitive.bind(*inputs, **equation.params)
    return [_known(x) for x in (found if equation.primitive.multiple_results else [found])]


@lru_cache(maxsize=64)
def _expanded(primitive: Any, jaxpr: ClosedJaxpr, layout: Any, shapes: tuple) -> ClosedJaxpr:
    """A loop over bodies or pairs as operations on arrays; in a loop over steps it is met again and again."""
    return jax.make_jaxpr(lambda *x: primitive.impl(*x, jaxpr=jaxpr, layout=layout))(*(jax.ShapeDtypeStruct(*shape) for shape in shapes))


def _erf_inv(x: np.ndarray) -> np.ndarray:
    from scipy.special import erfinv  # read where it is met

    return erfinv(x)


# Entry by entry: what NumPy calls it, and for which kinds of numbers it does the same.

_REAL, _NUMBER, _ANY, _WHOLE = "f", "fiu", "fiub", "biu"
_EACH: dict[str, tuple[Callable, str]] = {
    **{name: (getattr(np, name), _NUMBER) for name in ("square", "sign", "floor", "ceil")},
    **{name: (getattr(np, name), _REAL) for name in ("sqrt", "sin", "cos", "tan", "exp", "exp2", "log", "log1p", "expm1", "tanh", "sinh", "cosh")},
    **{name: (getattr(np, f"arc{name[1:]}"), _REAL) for name in ("asin", "acos", "atan", "atan2", "asinh", "acosh", "atanh")},
    **{sign: (getattr(np, word), _ANY) for sign, word in {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal"}.items()},
    **{sign: (getattr(np, word), _ANY) for sign, word in {"gt": "greater", "ge": "greater_equal", "max": "maximum", "min": "minimum"}.items()},
    **{word: (getattr(np, f"bitwise_{word}"), _WHOLE) for word in ("and", "or", "xor", "not")},
    "add": (np.add, _NUMBER),
    "add_any": (np.add, _NUMBER),
    "sub": (np.subtract, _NUMBER),
    "mul": (np.multiply, _NUMBER),
    "div": (np.divide, _REAL),
    "neg": (np.negative, _NUMBER),
    "abs": (np.abs, _NUMBER),
    "pow": (np.power, _REAL),
    "rsqrt": (lambda x: (1 / np.sqrt(x)).astype(x.dtype), _REAL),
    "is_finite": (np.isfinite, _REAL),
    "rem": (np.fmod, _NUMBER),
    "shift_left": (np.left_shift, "iu"),
    "shift_right_logical": (np.right_shift, "u"),
    "shift_right_arithmetic": (np.right_shift, "i"),
    "clamp": (lambda low, x, high: np.clip(x, low, high), _NUMBER),
    "erf_inv": (_erf_inv, _REAL),
    "copy": (np.asarray, _ANY),
    "copy_p": (np.asarray, _ANY),
}


# Arrays: (equation, inputs) ↦ outputs, with what the equation says of shapes.


def _bits(equation, inputs: list) -> list:
    x, dtype = np.ascontiguousarray(inputs[0]), _result(equation).dtype
    return [x.view(dtype).reshape(np.shape(inputs[0]))] if x.dtype.itemsize == dtype.itemsize else _by_jax(equation, inputs)


def _padded(equation, inputs: list) -> list:
    x, value = inputs
    config = equation.params["padding_config"]
    if min([0, *(min(low, high) for low, high, _ in config)]) < 0:
        return _by_jax(equation, inputs)
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
    found = np.einsum(f"{''.join(names[0])},{''.join(names[1])}->{''.join(out)}", *inputs)
    return [np.asarray(found, _result(equation).dtype)]


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
        return [np.asarray(function(x, axis=tuple(equation.params["axes"]), initial=bounds[0 if least else 1]), _result(equation).dtype)]

    return extreme


_MOVING: dict[str, Callable] = {
    "broadcast_in_dim": _broadcast,
    "dot_general": _dot,
    "select_n": _select,
    "slice": _slice,
    "dynamic_slice": lambda e, x: [x[0][_part(x[0], x[1:], e.params["slice_sizes"])]],
    "dynamic_update_slice": _updated,
    "iota": _iota,
    "integer_pow": lambda e, x: [np.asarray(x[0] ** float(e.params["y"]), _result(e).dtype)],
    "convert_element_type": lambda e, x: [np.asarray(x[0]).astype(_result(e).dtype)],
    "transpose": lambda e, x: [np.transpose(x[0], e.params["permutation"])],
    "stack": lambda e, x: [np.stack(x, e.params["axis"])],
    "concatenate": lambda e, x: [np.concatenate(x, e.params["dimension"])],
    "rev": lambda e, x: [np.flip(x[0], e.params["dimensions"])],
    "split": lambda e, x: np.split(x[0], np.cumsum(e.params["sizes"])[:-1], e.params["axis"]),
    **{name: lambda e, x: [np.reshape(x[0], _result(e).shape)] for name in ("reshape", "squeeze", "expand_dims")},
    **{f"reduce_{word}": _reduced(function) for word, function in {"sum": np.sum, "prod": np.prod, "and": np.all, "or": np.any}.items()},
    "reduce_max": _extreme(np.max, least=True),
    "reduce_min": _extreme(np.min, least=False),
    "optimization_barrier": lambda e, x: x,
    "bitcast_convert_type": _bits,
    "pad": _padded,
    "unstack": lambda e, x: list(np.moveaxis(x[0], e.params["axis"], 0)),
    **_GATHERING,
}


# Calls, loops and branches: (params, inputs) ↦ outputs.


def _call(params, inputs: list) -> list:
    inner = next(params[name] for name in ("jaxpr", "call_jaxpr", "fun_jaxpr") if name in params)
    return _run(inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ()), inputs)


def _while(params, inputs: list) -> list:
    first, second = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    of_cond, of_body, carry = inputs[:first], inputs[first:second], inputs[second:]
    while np.any(on := np.asarray(_run(params["cond_jaxpr"], [*of_cond, *carry])[0])):
        new = _run(params["body_jaxpr"], [*of_body, *carry])
        # Of many at once, those that have finished keep what they had.
        at = lambda x, on=on: on.reshape(*on.shape, *[1] * (np.ndim(x) - on.ndim))
        carry = [np.where(at(x), x, old) for x, old in zip(new, carry, strict=True)] if on.ndim else new
    return carry


def _scan(params, inputs: list) -> list:
    first, second = params["num_consts"], params["num_consts"] + params["num_carry"]
    shared, carry, rows = inputs[:first], inputs[first:second], inputs[second:]
    order = range(params["length"])
    kept: dict[int, list] = {}
    for k in reversed(order) if params["reverse"] else order:
        out = _run(params["jaxpr"], [*shared, *carry, *(row[k] for row in rows)])
        carry, kept[k] = out[: len(carry)], out[len(carry) :]
    shapes = params["jaxpr"].out_avals[len(carry) :]
    empty = [np.zeros((0, *aval.shape), aval.dtype) for aval in shapes]
    return [*carry, *(np.stack([kept[k][i] for k in order]) if order else none for i, none in enumerate(empty))]


def _cond(params, inputs: list) -> list:
    which, branches = int(inputs[0]), params["branches"]
    return _run(branches[min(max(which, 0), len(branches) - 1)], inputs[1:])


def _solve(params, inputs: list) -> list:
    lengths = params["const_lengths"]
    first = lengths.matvec + lengths.vecmat
    return _run(params["jaxprs"].solve, [*inputs[first : first + lengths.solve], *inputs[sum(lengths) :]])


_CALLS = ("jit", "pjit", "closed_call", "core_call", "custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr", "remat", "checkpoint", "remat2")
_CONTROL: dict[str, Callable] = {
    **dict.fromkeys(_CALLS, _call),
    **dict.fromkeys(("linear_solve", "custom_linear_solve"), _solve),
    "while": _while,
    "scan": _scan,
    "cond": _cond,
}
