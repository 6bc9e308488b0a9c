"""Primitives expressed by simpler ones.

    equation of a primitive  ↦  call of the program of a function of jnp that computes the same

An engine without code of its own for a primitive runs that program instead. Derivatives are taken before, by JAX's own rules, so values are enough.
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import Any

import jax

from bismut.programs.jaxprs import trace
from bismut.programs.operation import OutOfReach, lookup
from bismut.programs.program import CALL, Equation, Primitive, Program

_call = Primitive(CALL)


def simplified(program: Program) -> Program:
    """The program with calls in place of primitives that have a decomposition. One that is out of reach becomes a primitive called by the reason."""
    return _Simplifier().program(program)


class _Simplifier:
    """One pass; a program that occurs twice stays one."""

    def __init__(self) -> None:
        self._programs: dict[int, tuple[Program, Program]] = {}  # with the program, so that its number stays its own

    def program(self, old: Program) -> Program:
        if id(old) not in self._programs:
            new = Program(old.invars, old.outvars, [self._equation(e) for e in old.eqns], old.constvars, old.consts)
            self._programs[id(old)] = old, new
        return self._programs[id(old)][1]

    def _equation(self, old: Equation) -> Equation:
        name = old.primitive.name
        known = lookup(name)
        if known.decomposes(old):
            kinds = tuple((v.aval.shape, v.aval.dtype) for v in old.invars)
            try:
                inner = _traced(name, tuple(sorted(old.source.items())), kinds)
            except OutOfReach as reason:
                return Equation(Primitive(str(reason)), old.invars, old.outvars, {})
            except Exception as problem:  # an unforeseen case, such as one of no elements
                inputs = ", ".join(f"{dtype}{list(shape)}" for shape, dtype in kinds)
                reason = f"{name} of {inputs} (its decomposition ended with {type(problem).__name__}: {problem})"
                return Equation(Primitive(reason), old.invars, old.outvars, {})
            params = {"jaxpr": self.program(inner), "name": name, "custom": True, "loops": known.loops}
            return Equation(_call, old.invars, old.outvars, params)
        if not old.programs:
            return old
        return Equation(
            old.primitive, old.invars, old.outvars, {key: self._parameter(value) for key, value in old.params.items()}, old.effects, old.source
        )

    def _parameter(self, value: Any) -> Any:
        """A parameter, with programs simplified."""
        if isinstance(value, Program):
            return self.program(value)
        return tuple(map(self._parameter, value)) if type(value) in (tuple, list) else value


@lru_cache(maxsize=256)
def _traced(name: str, params: tuple[tuple[str, Hashable], ...], kinds: tuple) -> Program:
    inputs = [jax.ShapeDtypeStruct(*kind) for kind in kinds]
    return trace(lambda *x: lookup(name).decompose(*x, **dict(params)), *inputs).program
