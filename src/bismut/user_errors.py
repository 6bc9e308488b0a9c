"""What a function of the user did wrong, in a sentence; and which line of theirs a warning is about.

A step is compiled, so functions are called with arrays whose numbers are not known yet. JAX says so in several lines about tracers; what was done is
one of four things, and each has its remedy.
"""

import sys
import warnings

_BETWEEN = frozenset(("bismut", "equinox", "jaxtyping", "jax", "beartype", "typeguard"))  # whose lines are not the caller's
_REMEDIES = {
    "TracerArrayConversionError": "it calls NumPy. Use jax.numpy as jnp inside it: jnp.cos instead of np.cos, jnp.array instead of np.array",
    "TracerBoolConversionError": "it decides by a number that is not known when it is compiled. Use jnp.where(condition, a, b) instead of if",
    "TracerIntegerConversionError": "it takes a number that is not known yet for an index. Use jnp.take(array, index) instead of list[index]",
    "ConcretizationTypeError": "it needs a Python number. Use jnp.cos instead of math.cos, and omit float(...)",
}


def reason_of(problem: BaseException) -> str:
    """The remedy for a known mistake, otherwise the first line of its message."""
    for kind in type(problem).__mro__:
        if kind.__name__ in _REMEDIES:
            return _REMEDIES[kind.__name__]
    if isinstance(problem, KeyError):
        return f"it looks up {problem}, which is not there"
    text = str(problem).strip()
    return text.splitlines()[0].rstrip(".") if text else type(problem).__name__


def warn(message: str, kind: type[Warning]) -> None:
    """Warn of the line that called bismut, however many calls lie between."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _BETWEEN:
        frame, level = frame.f_back, level + 1
    warnings.warn(message, kind, stacklevel=level)
