"""A walk through a program that writes code.

Every operation emits its own code, (scope, equation, inputs) ↦ outputs, where arrays are NumPy arrays of lanes or `Field`s.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from bismut.programs.codegen.code import has_vectors
from bismut.programs.codegen.field import Array, Buffer, Field, Formula, depth, lanes, reads, stored, table
from bismut.programs.codegen.frame import IN_LOOPS, IN_REGISTERS, Scope, TooLong
from bismut.programs.codegen.lane import array_of, constants
from bismut.programs.operation import lookup
from bismut.programs.program import Literal, Program, Refused

FEW = 4  # entries up to which an array always is a few lanes
DEEPEST = 50  # formulas within each other: each takes four frames of Python's stack, which has 1000


def known(scope: Scope, value: Any) -> Array:
    """An array known while the code is written; large ones are tables."""
    value = np.asarray(value)
    return table(scope.frame, value) if value.size > IN_REGISTERS else constants(value)


def run(scope: Scope, program: Program, inputs: list[Array]) -> list[Array]:
    """The outputs of a program."""
    uses = Counter(v for equation in program.eqns for v in equation.invars if not isinstance(v, Literal))
    uses.update(v for v in program.outvars if not isinstance(v, Literal))
    env: dict[Any, Array] = dict(zip(program.constvars, (known(scope, value) for value in program.consts), strict=True))
    env.update(zip(program.invars, inputs, strict=True))
    left = dict(uses)

    def read(v: Any) -> Array:
        return env[v] if not isinstance(v, Literal) else known(scope, np.asarray(v.val, _dtype(v.aval)))

    def given(equation) -> list[Array]:
        """What an equation works on. May overwrite a buffer with no remaining reader, including deferred formulas."""
        operation = lookup(equation.primitive.name)
        overwriting = operation.overwrites or operation.hands_on
        if operation.overwrites:
            mine = [v for v in equation.invars if not isinstance(v, Literal)]
            spare = {env[v].owner for v in mine if isinstance(env[v], Buffer) and env[v].spare}
            for v in mine:
                env[v] = _detached(scope, env[v], spare)
        inputs = [read(v) for v in equation.invars]
        for i, (v, x) in enumerate(zip(equation.invars, inputs, strict=True)):
            if isinstance(x, Buffer) and x.spare:
                last = overwriting and left[v] == 1 and not any(x.owner in reads(y) for u, y in env.items() if u is not v)
                inputs[i] = x if last else x.protected()
        return inputs

    for equation in program.eqns:
        inputs = given(equation)
        outputs = _outputs(scope, equation, inputs)
        for v, output in zip(equation.outvars, outputs, strict=True):
            if isinstance(output, Formula):
                output.reads = output.reads.union(*map(reads, inputs))
                output.depth = 1 + max(map(depth, inputs), default=0)
            if uses[v]:
                env[v] = _settled(scope, output, uses[v])
        for v in equation.invars:
            if not isinstance(v, Literal):
                left[v] -= 1
                if not left[v]:
                    env.pop(v, None)  # its room in the workspace can be used again
    return [read(v) for v in program.outvars]


def _outputs(scope: Scope, equation: Any, inputs: list[Array]) -> list[Array]:
    """What the rule of an equation gives. What goes wrong in it is a refusal too: there is another engine."""
    try:
        outputs = lookup(equation.primitive.name).emit(scope, equation, inputs)
        return [x if isinstance(x, Field | np.ndarray) else array_of([x], ()) for x in outputs]  # NumPy makes its entry of an array without axes
    except (Refused, TooLong):
        raise
    except Exception as problem:
        kinds = ", ".join(str(v.aval) for v in equation.invars)
        raise Refused(f"{equation.primitive.name} of {kinds} (its rule ended with {type(problem).__name__}: {problem})") from problem


def _detached(scope: Scope, x: Array, spare: set) -> Array:
    """An array that does not lie in memory about to be written over."""
    if isinstance(x, Buffer) and not x.spare and x.owner in spare and x.size <= IN_LOOPS:
        return lanes(scope, x)
    return stored(scope, x) if isinstance(x, Formula) else x


def _dtype(aval: Any) -> Any:
    return aval.dtype


def _settled(scope: Scope, output: Array, uses: int) -> Array:
    """A few numbers are lanes; a formula that is used more than once is computed once."""
    if not isinstance(output, Field):
        return output
    if output.size <= FEW:
        return lanes(scope, output)
    return stored(scope, output) if uses > 1 or depth(output) > DEEPEST else output


_WRITTEN = {"debug_print": "jax.debug.print", "debug_callback": "jax.debug.callback", "pure_callback": "jax.pure_callback"}  # as people write them


def unknown(program: Program) -> set[str]:
    """Primitives without a rule, and kinds of numbers without a vector."""
    missing = {f"{v.aval.dtype} numbers" for v in (*program.constvars, *program.invars) if not has_vectors(v.aval.dtype)}
    for equation in program.eqns:
        name = equation.primitive.name
        if lookup(name).emit is None:
            missing.add(str(_WRITTEN.get(name, name)))
        else:
            missing |= {f"{name} of {v.aval.dtype} numbers" for v in equation.outvars if not has_vectors(v.aval.dtype)}
        for inner in equation.programs:
            missing |= unknown(inner)
    return missing
