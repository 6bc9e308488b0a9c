"""What a function depends on, read off its jaxpr.

    depends(f, x, rest) is False   ⟹   f does not change with x
    affine(f, x) is True           ⟹   f is affine in x: ∂f/∂x does not depend on x, and no step function (sign, floor, ...) of x hides in it

The answer is structural: no numbers are tried. It is how a scheme finds out by itself that its equation is linear, or explicit, or splits
into bodies, instead of being told. "True" only means that independence is not evident.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.extend.core import Literal

from bismut.repetition import each_p, pairs_p


def depends(function: Callable, x, *rest) -> bool:
    """Whether any output of function(x, *rest) can depend on x."""
    closed = jax.make_jaxpr(function)(x, *rest)
    count = len(jax.tree.leaves(x))
    marks = [i < count for i in range(len(closed.jaxpr.invars))]
    return any(_reached(closed.jaxpr, marks))


def affine(function: Callable, x) -> bool:
    """Whether function(x) is evidently affine in x."""
    steps: list[str] = []
    closed = jax.make_jaxpr(function)(x)
    _reached(closed.jaxpr, [True] * len(closed.jaxpr.invars), steps)
    return not steps and not depends(lambda y, d: jax.jvp(function, (y,), (d,))[1], x, x)


# Derivatives of these are zero, or look the other way: what goes through them is not seen in a Jacobian.
_STEPS = frozenset(
    [
        "sign",
        "floor",
        "ceil",
        "round",
        "is_finite",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "argmax",
        "argmin",
        "sort",
        "stop_gradient",
        "convert_element_type",
    ]
)


def _reached(jaxpr, marks: list[bool], steps: list[str] | None = None) -> list[bool]:
    """Which outputs the marked inputs reach; names of step functions on the way are added to `steps`."""
    marked = {v for v, mark in zip(jaxpr.invars, marks, strict=True) if mark}
    for equation in _used(jaxpr):
        inputs = [not isinstance(v, Literal) and v in marked for v in equation.invars]
        if not any(inputs):
            continue
        if steps is not None and equation.primitive.name in _STEPS and not _keeps_reals(equation):
            steps.append(equation.primitive.name)
        inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
        # A call is looked into; anything with control flow counts as depending on all it is given.
        called = inner is not None and equation.primitive.name in (
            "jit",
            "pjit",
            "closed_call",
            "custom_jvp_call",
            "custom_vjp_call",
            "remat",
            "checkpoint",
        )
        layout = equation.params.get("layout") if equation.primitive in (each_p, pairs_p) else None
        if layout is not None and inner is not None:  # a loop over items that do not know of each other
            outputs = layout.joined(_reached(inner.jaxpr, layout.spread(inputs), steps))
        else:
            outputs = _reached(getattr(inner, "jaxpr", inner), inputs, steps) if called else [True] * len(equation.outvars)
        marked |= {v for v, mark in zip(equation.outvars, outputs, strict=True) if mark}
    return [not isinstance(v, Literal) and v in marked for v in jaxpr.outvars]


def _used(jaxpr) -> list:
    """The equations that lead to an output. A point on a circle is wrapped by a step function, even where only its derivative is asked for."""
    wanted, used = {v for v in jaxpr.outvars if not isinstance(v, Literal)}, []
    for equation in reversed(jaxpr.eqns):
        if not wanted.isdisjoint(equation.outvars):
            used.append(equation)
            wanted |= {v for v in equation.invars if not isinstance(v, Literal)}
    return used[::-1]


def _keeps_reals(equation) -> bool:
    """A conversion between real types is no step function."""
    return equation.primitive.name == "convert_element_type" and jnp.issubdtype(equation.params["new_dtype"], jnp.floating)
