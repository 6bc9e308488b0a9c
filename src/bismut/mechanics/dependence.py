"""What a function depends on, read off its jaxpr.

    depends(f, x, rest) is False   ⟹   f does not change with x
    affine(f, x) is True           ⟹   f(x) = A x + b, because every operation that x reaches is known to be affine in what it is given

The answer is structural: no numbers are tried. It is how a scheme finds out by itself that its equation is linear, or explicit, or splits
into bodies, instead of being told. "Depends" and "not affine" only mean that the opposite is not evident: what is unknown counts as the worst.
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
    bent: list[str] = []
    closed = jax.make_jaxpr(function)(x)
    _reached(closed.jaxpr, [True] * len(closed.jaxpr.invars), bent)
    return not bent


# Linear in all their operands at once: they move, copy, add or change the sign of numbers.
_LINEAR = frozenset(
    [
        *("add", "add_any", "sub", "neg", "copy", "copy_p", "real", "imag", "complex", "conj"),
        *("reshape", "squeeze", "expand_dims", "broadcast_in_dim", "transpose", "rev", "slice", "split", "concatenate", "pad"),
        *("reduce_sum", "cumsum", "reduce_window_sum", "optimization_barrier"),
    ]
)
# Products: linear in each operand, so affine where x reaches only one of them.
_PRODUCTS = frozenset(["mul", "dot_general", "conv_general_dilated"])
# Affine in the operands up to a place (after it: divisors, and indices that say which numbers are meant), or from a place on (before it: conditions).
_FIRST = {"div": 1, "dynamic_slice": 1, "gather": 1, "dynamic_update_slice": 2}
_AFTER = {"select_n": 1}

# A function with a derivative of its own is looked into for what it depends on; whether it is affine its text does not say, because a step is
# solved with the derivative.
_CALLS = ("jit", "pjit", "closed_call", "custom_jvp_call", "custom_vjp_call", "remat", "remat2", "checkpoint")


def _bends(equation, inputs: list[bool]) -> bool:
    """Whether an operation is not known to be affine in the marked operands."""
    name = equation.primitive.name
    if name in _LINEAR:
        return False
    if name in _PRODUCTS:
        return sum(inputs) > 1
    if name in _FIRST:
        return any(inputs[_FIRST[name] :])
    if name in _AFTER:
        return any(inputs[: _AFTER[name]])
    if name in ("scatter-add", "scatter"):
        return inputs[1]  # (into, where, what)
    if name == "triangular_solve":
        return inputs[0]  # (matrix, right-hand side)
    if name == "integer_pow":
        return equation.params["y"] not in (0, 1)
    # A conversion between real types is no step function; one to whole numbers is.
    return not (name == "convert_element_type" and jnp.issubdtype(equation.params["new_dtype"], jnp.floating))


def _reached(jaxpr, marks: list[bool], bent: list[str] | None = None) -> list[bool]:
    """Which outputs the marked inputs reach; names of operations on the way that are not evidently affine are added to `bent`."""
    marked = {v for v, mark in zip(jaxpr.invars, marks, strict=True) if mark}
    for equation in _used(jaxpr):
        inputs = [not isinstance(v, Literal) and v in marked for v in equation.invars]
        if not any(inputs):
            continue
        inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
        layout = equation.params.get("layout") if equation.primitive in (each_p, pairs_p) else None
        if layout is not None and inner is not None:  # a loop over items that do not know of each other
            outputs = layout.joined(_reached(inner.jaxpr, layout.spread(inputs), bent))
        elif inner is not None and equation.primitive.name in _CALLS:
            outputs = _reached(getattr(inner, "jaxpr", inner), inputs, bent)
            if bent is not None and equation.primitive.name.startswith("custom"):
                bent.append(equation.primitive.name)
        else:  # anything with control flow counts as depending on all it is given
            outputs = [True] * len(equation.outvars)
            if bent is not None and _bends(equation, inputs):
                bent.append(equation.primitive.name)
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
