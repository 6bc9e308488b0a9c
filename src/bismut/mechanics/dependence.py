"""What a function depends on, read off its jaxpr.

    depends(f, x, rest) is False   ⟹   ∂f/∂x = 0 identically

The answer is structural: no numbers are tried. It is how a scheme finds out by itself that its equation is linear, or explicit, or splits
into bodies, instead of being told. "True" only means that independence is not evident.
"""

from collections.abc import Callable

import jax
from jax.extend.core import Literal


def depends(function: Callable, x, *rest) -> bool:
    """Whether any output of function(x, *rest) can depend on x."""
    closed = jax.make_jaxpr(function)(x, *rest)
    count = len(jax.tree.leaves(x))
    marks = [i < count for i in range(len(closed.jaxpr.invars))]
    return any(_reached(closed.jaxpr, marks))


def _reached(jaxpr, marks: list[bool]) -> list[bool]:
    marked = {v for v, mark in zip(jaxpr.invars, marks, strict=True) if mark}
    for equation in jaxpr.eqns:
        inputs = [not isinstance(v, Literal) and v in marked for v in equation.invars]
        if not any(inputs):
            continue
        inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
        # A call is looked into; anything with control flow counts as depending on all it is given.
        called = equation.primitive.name in ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat", "checkpoint")
        outputs = _reached(getattr(inner, "jaxpr", inner), inputs) if called and inner is not None else [True] * len(equation.outvars)
        marked |= {v for v, mark in zip(equation.outvars, outputs, strict=True) if mark}
    return [not isinstance(v, Literal) and v in marked for v in jaxpr.outvars]
