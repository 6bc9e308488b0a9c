"""What is known of an operation, in one object.

    evaluate   (equation, arrays) ↦ arrays, in NumPy; None for a case that is left to JAX
    emit       (scope, equation, arrays) ↦ arrays, as LLVM code (`codegen`)
    decompose  (*inputs, **params) ↦ outputs in jnp, where the operation has no code of its own; OutOfReach for a case that is not covered
    affine_in  the inputs in which it is jointly affine
    jumps      whether outputs may jump where inputs do not; None: where reals alone give integers or truth values
    cost       how many scalar operations it stands for

What is missing is a refusal by construction: without `evaluate` JAX evaluates, without `emit` and `decompose` the native engine refuses, without
`affine_in` the operation counts as bent. Operations are registered by the names of JAX's primitives, in the files of `operations`, one for each kind.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bismut.programs.program import Equation

NOWHERE, EVERYWHERE = slice(0, 0), slice(None)  # positions of inputs
EACH = "each"  # linear in each input while the others are fixed, as products are


class OutOfReach(Exception):
    """A case that a decomposition does not cover, in words."""


class Operation:
    """The base of all operations: nothing is known."""

    names: tuple[str, ...] = ()
    evaluate: Any = None
    emit: Any = None
    decompose: Any = None
    affine_in: slice | str = NOWHERE
    jumps: bool | None = None
    factorises = False  # whether it factorises matrices, or solves with factors
    loops = False  # whether its decomposition is best a loop over memory
    overwrites = False  # whether its code may write over what it is given
    hands_on = False  # whether its code hands inputs on to one that may

    @property
    def name(self) -> str:
        return self.names[0]

    def decomposes(self, equation: Equation) -> bool:
        """Whether the decomposition is used for an equation."""
        del equation
        return self.decompose is not None

    def affine(self, equation: Equation, marked: list[bool]) -> bool:
        """Whether the outputs are affine in the marked inputs."""
        del equation
        if self.affine_in == EACH:
            return sum(marked) <= 1
        inside = range(len(marked))[self.affine_in]  # pyright: ignore[reportArgumentType, reportCallIssue]
        return all(i in inside for i, mark in enumerate(marked) if mark)

    def in_loops(self, equation: Equation) -> bool:
        """Whether its code is a loop that is too long to be written out, also in a short step."""
        del equation
        return False

    def may_jump(self, equation: Equation) -> bool:
        """Whether an output may jump where the inputs do not, which no derivative shows."""
        if self.jumps is not None or equation.programs:  # what an equation holds answers for itself
            return bool(self.jumps)
        kinds = lambda atoms: {getattr(atom.aval.dtype, "kind", "") for atom in atoms}  # keys of random numbers have none
        return kinds(equation.invars) == {"f"} and bool(kinds(equation.outvars) & set("iub"))

    def cost(self, equation: Equation) -> int:
        return sum(v.aval.size for v in equation.outvars)


_UNKNOWN = Operation()
_REGISTRY: dict[str, Operation] = {}


def lookup(name: str) -> Operation:
    """The operation of a primitive; one of which nothing is known if it is not registered."""
    return _REGISTRY.get(name, _UNKNOWN)


def registered() -> dict[str, Operation]:
    """All operations, by the names of primitives."""
    return dict(_REGISTRY)


def register(known: Operation) -> None:
    for name in known.names:
        assert name not in _REGISTRY, f"{name} is defined twice"
        _REGISTRY[name] = known


def operation(*names: str) -> Callable[[type], type]:
    """Register a class of one operation under the names of its primitives."""

    def define(kind: type) -> type:
        known = kind()
        known.names = names
        register(known)
        return kind

    return define


def decomposition(
    *names: str, affine_in: slice | str = NOWHERE, jumps: bool | None = None, factorises: bool = False
) -> Callable[[Callable], Callable]:
    """Register a function of jnp as what primitives compute, expressed by simpler ones."""

    def define(function: Callable) -> Callable:
        known = Operation()
        known.names, known.decompose, known.affine_in, known.jumps, known.factorises = names, function, affine_in, jumps, factorises
        register(known)
        return function

    return define


def result(equation: Equation) -> Any:
    """Shape and kind of the first output."""
    return equation.outvars[0].aval
