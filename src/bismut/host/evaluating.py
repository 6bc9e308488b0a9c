"""A function evaluated once, here and now, without compiling.

JAX compiles every operation when it meets it first, 20 ms each; a check that evaluates a function at one point would take a second, nearly all of it
compiling. So the function is traced, and its program carried out in NumPy, equation by equation. What has no line in the tables is left to JAX.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from bismut.compile_cache import Memory, key, split
from bismut.host import arrays, control, entries, keys
from bismut.host.keys import KEY, understood, unwrapped, wrapped
from bismut.programs import LOOPS, Literal, Program, Refused, Traced, bind, closed_over, expansion, trace
from bismut.tracing import traced

Given = list[np.ndarray]
Method = TypeVar("Method", bound=Callable)


def evaluate(function: Callable, *arguments: Any) -> Any:
    """function(*arguments); as JAX does it where something is traced."""
    return repeated(function)(*arguments)


def repeated(function: Callable) -> Callable:
    """The function evaluated so, traced once for arguments of the same shapes: for those who ask a few times."""
    known: dict[Any, Traced | None] = {}  # None where it cannot be read

    def call(*arguments: Any) -> Any:
        if traced(arguments):
            return function(*jax.tree.map(jnp.asarray, arguments))
        leaves, structure = jax.tree.flatten(arguments)
        key = structure, tuple(jax.typeof(leaf) for leaf in leaves)
        if key not in known:
            known[key] = _readable(function, arguments)
        whole = known[key]
        if whole is None:
            return function(*jax.tree.map(jnp.asarray, arguments))
        with np.errstate(all="ignore"), jax.ensure_compile_time_eval():  # here and now, also where something else is being traced
            found = _run(whole.program, [_known(leaf, aval.dtype) for leaf, aval in zip(leaves, whole.program.in_avals, strict=True)])
            return jax.tree.unflatten(whole.structure, _given(found))  # jnp.asarray would compile

    return call


def _readable(function: Callable, arguments: tuple) -> Traced | None:
    """The function as a program; None where that has constants that JAX traces, or cannot be read."""
    try:
        found = trace(function, *arguments)
    except Refused:
        return None
    return None if closed_over(found.program) else found


def at_once(method: Method) -> Method:
    """A method that is evaluated so where its arguments are known, and is what it was where anything is traced."""

    @wraps(method)
    def call(self, *arguments, **named):
        if traced((self, arguments, named)):
            return method(self, *arguments, **named)
        arrays = [i for i, argument in enumerate(arguments) if not isinstance(argument, str | int | float | type | np.dtype | None)]
        others = tuple(None if i in arrays else argument for i, argument in enumerate(arguments))
        numbers, owner = split((self, named))

        def function(numbers, *given):
            mine, chosen = owner(numbers)
            everything = list(others)
            for i, argument in zip(arrays, given, strict=True):
                everything[i] = argument
            return method(mine, *everything, **chosen)

        # Traced once for all that are the same: tracing takes milliseconds, and the jaxpr of an energy is carried out in a fraction of one.
        program = _METHODS.get((method, key((self, named, others)), tuple(arrays)), lambda: repeated(function))
        return program(numbers, *(arguments[i] for i in arrays))

    return cast(Method, call)


_METHODS = Memory(256)


def _run(program: Program, arguments: list) -> list:
    env: dict[Any, Any] = dict(zip(program.constvars, map(_known, program.consts), strict=True))
    env.update(zip(program.invars, arguments, strict=True))
    read = lambda v: np.asarray(v.val, v.aval.dtype) if isinstance(v, Literal) else env[v]
    for equation in program.eqns:
        inputs = [read(v) for v in equation.invars]
        env.update(zip(equation.outvars, _outputs(equation, inputs), strict=True))
    return [read(v) for v in program.outvars]


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
    name = equation.primitive.name
    if name in entries.ENTRYWISE and entries.knows(name, inputs, equation.params):
        return [entries.compute(name, inputs, equation.params)]
    if name in arrays.RULES and (found := arrays.RULES[name](equation, inputs)) is not None:
        return found
    if name in control.RULES:
        return control.RULES[name](_run, equation.params, inputs)
    if name in keys.RULES and any(understood(v.aval.dtype) for v in (*equation.invars, *equation.outvars)):
        return keys.RULES[name](equation, inputs)
    if name in LOOPS:
        return _run(expansion(equation), inputs)
    return _by_jax(equation, inputs)


def _by_jax(equation, inputs: list) -> list:
    inputs = [wrapped(x) if _is_key(x) else x for x in inputs]
    return [_known(x) for x in bind(equation, inputs)]
