"""A walk through a jaxpr that writes code.

Every primitive has a rule, a function (scope, equation, inputs) ↦ outputs, where arrays are NumPy arrays of lanes or `Field`s. Rules are found by
the primitive's name; the files beside this one hold them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from jax.extend.core import ClosedJaxpr, Literal

from bismut.engines.native.field import Array, Field, lanes, stored
from bismut.engines.native.frame import Scope
from bismut.engines.native.lane import constants

FEW = 4  # entries up to which an array always is a few lanes


class Refused(Exception):
    """Something that this engine has no code for, in words."""


Rule = Callable[[Scope, Any, list], list]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a function as the rule of primitives."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, function))
        return function

    return register


def known(value: Any) -> Array:
    """An array known while the code is written; large ones are tables."""
    return constants(value)


def run(scope: Scope, closed: ClosedJaxpr, inputs: list[Array]) -> list[Array]:
    """The outputs of a jaxpr."""
    jaxpr = closed.jaxpr
    uses = Counter(v for equation in jaxpr.eqns for v in equation.invars if not isinstance(v, Literal))
    uses.update(v for v in jaxpr.outvars if not isinstance(v, Literal))
    env: dict[Any, Array] = dict(zip(jaxpr.constvars, map(known, closed.consts), strict=True))
    env.update(zip(jaxpr.invars, inputs, strict=True))
    left = dict(uses)

    def read(v: Any) -> Array:
        return env[v] if not isinstance(v, Literal) else known(np.asarray(v.val, _dtype(v.aval)))

    for equation in jaxpr.eqns:
        outputs = RULES[equation.primitive.name](scope, equation, [read(v) for v in equation.invars])
        for v, output in zip(equation.outvars, outputs, strict=True):
            if uses[v]:
                env[v] = _settled(scope, output, uses[v])
        for v in equation.invars:
            if not isinstance(v, Literal):
                left[v] -= 1
                if not left[v]:
                    env.pop(v, None)  # its room in the workspace can be used again
    return [read(v) for v in jaxpr.outvars]


def _dtype(aval: Any) -> Any:
    return aval.dtype


def _settled(scope: Scope, output: Array, uses: int) -> Array:
    """A few numbers are lanes; a formula that is used more than once is computed once."""
    if not isinstance(output, Field):
        return output
    if output.size <= FEW:
        return lanes(scope, output)
    return stored(scope, output) if uses > 1 else output


def unknown(closed: ClosedJaxpr) -> set[str]:
    """Primitives without a rule, and kinds of numbers without a vector."""
    missing: set[str] = set()
    for equation in closed.jaxpr.eqns:
        name = equation.primitive.name
        if name not in RULES:
            missing.add(name)
        for v in equation.outvars:
            if np.dtype(v.aval.dtype).kind not in "fiub":
                missing.add(f"{name} of {v.aval.dtype} numbers")
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                if isinstance(inner, ClosedJaxpr):
                    missing |= unknown(inner)
                elif hasattr(inner, "eqns"):
                    missing |= unknown(ClosedJaxpr(inner, ()))
    return missing
