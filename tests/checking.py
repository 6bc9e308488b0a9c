"""Every type and every shape in a signature, checked whenever the function is called.

`jaxtyping` finds the functions and knows shapes. Its own decorator binds the arguments of each call, checks them twice, and writes new code for a
function each time an outer one defines it: half the time of what is called often. Here a call is checked once, by `beartype`, and sizes are
remembered only where a signature names some.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, get_args

import jaxtyping
from beartype import beartype

ROOMS = ("spaces", "noise", "mechanics", "actions", "flows", "ensembles", "findings", "store", "gallery", "figures", "sharing")

_jaxtyped = jaxtyping.jaxtyped


def check_signatures() -> None:
    """From now on, in all rooms that are imported."""
    jaxtyping.jaxtyped = lambda *, typechecker: lambda thing: _jaxtyped(thing, typechecker=typechecker) if isinstance(thing, type) else checked(thing)
    jaxtyping.install_import_hook([f"bismut.{room}" for room in ROOMS], "beartype.beartype")


def checked(function: Callable) -> Callable:
    """The function, with its arguments and what it returns checked."""
    written = function.__annotations__
    if not written:
        return function
    hints = {name: _resolved(hint, function.__globals__) for name, hint in written.items()}
    function.__annotations__ = hints
    try:
        found = beartype(function)
    finally:
        function.__annotations__ = written
    found.__annotations__ = written
    if not any(map(_has_shape, hints.values())):
        return found

    @wraps(function)
    def with_sizes(*arguments, **named):
        with _jaxtyped("context"):
            return found(*arguments, **named)

    return with_sizes


def _resolved(hint: Any, names: dict[str, Any]) -> Any:
    """A hint that is a string; anything where it names what is imported for checkers of types alone."""
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, names)
    except Exception:
        return Any


def _has_shape(hint: Any) -> bool:
    return hasattr(hint, "dim_str") or any(map(_has_shape, hint if isinstance(hint, list) else get_args(hint)))
