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

from bismut.compile_cache import LRUCache, partition, program_key
from bismut.programs.jaxprs import TracedFunction, bind, closed_over, expansion, trace
from bismut.programs.operation import lookup
from bismut.programs.operations.keys import KEY, understood, unwrapped, wrapped
from bismut.programs.operations.pair_portions import in_portions, portion_program
from bismut.programs.program import CALL, LOOPS, Equation, Literal, Program, Refused
from bismut.programs.structure import equations
from bismut.tracing import traced

Method = TypeVar("Method", bound=Callable)


def evaluate(function: Callable, *arguments: Any) -> Any:
    """function(*arguments); as JAX does it where something is traced."""
    return evaluator(function)(*arguments)


def evaluator(function: Callable, check: Callable[[int], None] | None = None) -> Callable:
    """The function evaluated so, traced once for arguments of the same shapes; reusable for repeated calls. `check` gets the bytes that it will keep,
    before anything is allocated."""
    known: dict[Any, tuple[TracedFunction, Callable[[list], list]] | None] = {}  # None where it cannot be read

    def call(*arguments: Any) -> Any:
        if traced(arguments):
            return function(*jax.tree.map(jnp.asarray, arguments))
        leaves, structure = jax.tree.flatten(arguments)
        key = structure, tuple(jax.typeof(leaf) for leaf in leaves)
        if key not in known:
            readable = _readable(function, arguments)
            if check is not None and readable is not None:
                check(kept_bytes(readable.program))
            with np.errstate(all="ignore"), jax.ensure_compile_time_eval():
                known[key] = None if readable is None else (readable, prepared(readable.program))
        both = known[key]
        if both is None:
            return function(*jax.tree.map(jnp.asarray, arguments))
        traced_function, carried_out = both
        with np.errstate(all="ignore"), jax.ensure_compile_time_eval():  # here and now, also where something else is being traced
            outputs = carried_out([_known(leaf, aval.dtype) for leaf, aval in zip(leaves, traced_function.program.in_avals, strict=True)])
            return jax.tree.unflatten(traced_function.structure, _given(outputs))  # jnp.asarray would compile

    return call


def _readable(function: Callable, arguments: tuple) -> TracedFunction | None:
    """The function as a program; None where that has constants that JAX traces, or cannot be read."""
    try:
        outputs = trace(function, *arguments)
    except Refused:
        return None
    if closed_over(outputs.program):
        return None
    for equation in equations(outputs.program):
        if equation.primitive.name in LOOPS:
            # Now: where JAX folds what is known, it compiles each operation for that.
            portion_program(equation) if in_portions(equation) else expansion(equation)
    return outputs


def numpy_eager(method: Method) -> Method:
    """A method that is evaluated so where its arguments are known, and is what it was where anything is traced."""

    @wraps(method)
    def call(self, *arguments, **named):
        if traced((self, arguments, named)):
            return method(self, *arguments, **named)
        arrays = [i for i, argument in enumerate(arguments) if not isinstance(argument, str | int | float | type | np.dtype | None)]
        others = tuple(None if i in arrays else argument for i, argument in enumerate(arguments))
        numbers, owner = partition((self, named))

        def function(numbers, *given):
            mine, chosen = owner(numbers)
            everything = list(others)
            for i, argument in zip(arrays, given, strict=True):
                everything[i] = argument
            return method(mine, *everything, **chosen)

        # Traced once for all that are the same: tracing takes milliseconds, and the jaxpr of an energy is carried out in a fraction of one.
        program = _METHODS.get((method, program_key((self, named, others)), tuple(arrays)), lambda: evaluator(function))
        return program(numbers, *(arguments[i] for i in arrays))

    return cast(Method, call)


_METHODS = LRUCache(256)


def prepared(program: Program) -> Callable[[list], list]:
    """The program as a function of its arguments that can be carried out many times: values have numbers, calls are written in place, and what does
    not depend on the arguments is computed here."""
    values: list = []  # None where they are not known yet
    steps: list[tuple] = []

    def place(value: Any = None) -> int:
        values.append(value)
        return len(values) - 1

    def write(part: Program, given: list[int]) -> list[int]:
        places = dict(zip(part.constvars, (place(_known(value)) for value in part.consts), strict=True))
        places.update(zip(part.invars, given, strict=True))
        read = lambda v: place(np.asarray(v.val, v.aval.dtype)) if isinstance(v, Literal) else places[v]
        for equation in part.eqns:
            inputs = [read(v) for v in equation.invars]
            if equation.primitive.name == CALL:
                outputs = write(equation.params["jaxpr"], inputs)
            elif equation.primitive.name in LOOPS and not in_portions(equation):
                outputs = write(expansion(equation), inputs)  # which bodies meet is known, and found once
            else:
                known = all(values[i] is not None for i in inputs) and not equation.effects
                outputs = [*map(place, _outputs(equation, [values[i] for i in inputs]) if known else [None] * len(equation.outvars))]
                if not known:
                    steps.append((equation, inputs, outputs))
            places.update(zip(equation.outvars, outputs, strict=True))
        return [read(v) for v in part.outvars]

    inputs = [place() for _ in program.invars]
    outputs = write(program, inputs)

    def carried_out(arguments: list) -> list:
        now = list(values)
        for i, argument in zip(inputs, arguments, strict=True):
            now[i] = argument
        for equation, given, results in steps:
            for i, result in zip(results, _outputs(equation, [now[i] for i in given]), strict=True):
                now[i] = result
        return [now[i] for i in outputs]

    return carried_out


_VIEWS = ("reshape", "squeeze", "expand_dims", "broadcast_in_dim", "transpose", "slice", "rev", "optimization_barrier")  # of their operands


def kept_bytes(program: Program) -> int:
    """How many bytes the values of a program take, all of which are kept until it ends; of loops those of one turn."""
    return sum(map(_kept_bytes, program.eqns))


def _kept_bytes(equation: Equation) -> int:
    name, parts = equation.primitive.name, equation.programs
    if name in LOOPS:
        parts = [portion_program(equation) if in_portions(equation) else expansion(equation)]
    own = 0 if name in (CALL, *_VIEWS) else sum(v.aval.size * v.aval.dtype.itemsize for v in equation.outvars)
    return own + max(map(kept_bytes, parts), default=0)


def run(program: Program, arguments: list) -> list:
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
    evaluate = lookup(equation.primitive.name).evaluate
    outputs = None if evaluate is None else evaluate(equation, inputs)
    return _by_jax(equation, inputs) if outputs is None else outputs


def _by_jax(equation, inputs: list) -> list:
    inputs = [wrapped(x) if _is_key(x) else x for x in inputs]
    return [_known(x) for x in bind(equation, inputs)]
