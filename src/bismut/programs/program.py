"""A function of arrays as a list of equations.

    program    inputs, constants  ─►  outputs = primitive(inputs; params), equation by equation  ─►  outputs

This is what engines compile, what NumPy evaluates and what questions about structure are asked of. It resembles a jaxpr, so that rules read alike,
but it is ours: whatever JAX renames from release to release is translated in one file, `jaxprs`.

    call            params: jaxpr, name, custom: whether it has a derivative of its own
    while           cond_jaxpr, body_jaxpr, cond_nconsts, body_nconsts
    scan            jaxpr, length, reverse, num_consts, num_carry
    cond            branches
    each, pairs     jaxpr, layout

are the equations that hold programs with a meaning of their own; all calls (jit, remat, custom derivatives, solves) are `call`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from bismut.programs.layout import LoopLayout

CALL, LOOPS = "call", ("each", "pairs")


class Refused(Exception):
    """Something that cannot be expressed or has no code, in words."""


class Aval:
    """Shape and kind of an array."""

    __slots__ = ("dtype", "shape", "size")

    def __init__(self, shape: tuple[int, ...], dtype: Any):
        self.shape, self.dtype, self.size = shape, dtype, int(np.prod(shape))

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.shape))}]"


class Var:
    """A value that an equation gives, or an input; it is itself and equal to no other."""

    __slots__ = ("aval",)

    def __init__(self, aval: Aval):
        self.aval = aval


class Literal:
    """A value known where it is used."""

    __slots__ = ("aval", "val")

    def __init__(self, val: Any, aval: Aval):
        self.val, self.aval = val, aval


Atom = Var | Literal


class Primitive:
    """The name of an operation that JAX does not have. Those that it has stand for themselves: they have a name, too, and can be evaluated."""

    def __init__(self, name: str):
        self.name = name


class Loop(NamedTuple):
    """A loop over items as JAX has it, with shapes and kinds of its operands, and which of them and of its results are left."""

    jaxpr: Any
    layout: LoopLayout
    kinds: tuple
    reads: tuple[bool, ...]
    used: tuple[bool, ...]

    def restricted(self, inputs: Sequence[bool], outputs: Sequence[bool]) -> Loop:
        left = lambda before, now: tuple(next(now) if mark else False for mark in before)
        return self._replace(reads=left(self.reads, iter(inputs)), used=left(self.used, iter(outputs)))


class Equation:
    """outvars = primitive(invars; params). `source` are its parameters in JAX, for evaluation by JAX; of a loop a `Loop`."""

    __slots__ = ("effects", "invars", "outvars", "params", "primitive", "source")

    def __init__(
        self, primitive: Any, invars: Sequence[Atom], outvars: Sequence[Var], params: dict[str, Any], effects: bool = False, source: Any = None
    ):
        self.primitive, self.invars, self.outvars, self.params = primitive, invars, outvars, params
        self.effects, self.source = effects, source

    @property
    def programs(self) -> list[Program]:
        """All programs that it holds."""
        return list(_programs_in(self.params.values()))

    def restricted(self, inputs: Sequence[bool], outputs: Sequence[bool], **params: Any) -> Equation:
        """The equation with these inputs and outputs alone."""
        source = self.source.restricted(inputs, outputs) if isinstance(self.source, Loop) else None
        invars, outvars = list(compress(self.invars, inputs)), list(compress(self.outvars, outputs))
        return Equation(self.primitive, invars, outvars, self.params | params, self.effects, source)


def _programs_in(values: Any) -> Iterator[Program]:
    for value in values:
        if isinstance(value, Program):
            yield value
        elif isinstance(value, tuple | list):
            yield from _programs_in(value)


class Program:
    """Equations in the order in which they are evaluated; constants are inputs whose values are known."""

    __slots__ = ("consts", "constvars", "eqns", "invars", "outvars")

    def __init__(
        self, invars: Sequence[Var], outvars: Sequence[Atom], eqns: Sequence[Equation], constvars: Sequence[Var] = (), consts: Sequence = ()
    ):
        self.invars, self.outvars, self.eqns, self.constvars, self.consts = list(invars), list(outvars), list(eqns), list(constvars), list(consts)

    @property
    def in_avals(self) -> list[Aval]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[Aval]:
        return [v.aval for v in self.outvars]
