"""The user's functions, called with the arguments they name.

A Lagrangian is lagrangian(q, v). If it names an argument `t` it is also given the time, and if it names `parameters`, the system's parameters:
numbers that may change, be swept or be differentiated without compiling anything again. The same holds for noise, force and potential.

Time has no default: a function that names t and is called without one is refused.

Where the sides of a box change, they travel with the parameters, and only what sees images gets them (`BoxedParameters`).
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, cast

from bismut.errors import BismutError, ShapeError
from bismut.formatting import function_name
from bismut.programs.autobatching import rolled_up

_OPTIONAL = ("t", "parameters")


class BoxedParameters(NamedTuple):
    """The parameters of a system, and the sides its box has now."""

    own: Any
    lengths: Any


@dataclass(frozen=True)
class UserFunction:
    """A user's function together with which of `t` and `parameters` it wants."""

    name: str
    function: Callable
    wants: tuple[str, ...]

    def __repr__(self) -> str:
        return f"{self.name}: {function_name(self.function)}"

    def __call__(self, *arguments, t, parameters):
        if t is None and "t" in self.wants:
            raise BismutError(f"{self!r} depends on t, but no time was given. Give it as t=, or fix the clock of the system with system.at(t).")
        if isinstance(parameters, BoxedParameters) and not isinstance(self.function, Adapter):
            parameters = parameters.own
        optional = {"t": t, "parameters": parameters}
        try:
            return rolled_up(self.function, *arguments, **{name: optional[name] for name in self.wants})
        except (TypeError, NotImplementedError) as problem:
            if not lacks_forward_derivative(problem):
                raise
            raise BismutError(
                f"{self!r} calls a function with a jax.custom_vjp, which has no forward derivative, and this needs one. "
                "Give it its derivative with jax.custom_jvp instead, from which JAX has both."
            ) from None


def lacks_forward_derivative(problem: Exception) -> bool:
    """Whether JAX refused to differentiate a function with a jax.custom_vjp forwards; it has two ways to say so."""
    return "custom_vjp" in str(problem) or "custom_lin" in str(problem)


class Adapter:
    """A function built from users' functions, its fields: it wants what they want. Subclasses are dataclasses whose `__call__` takes t and
    parameters with None as default; being classes, not closures, they can be pickled when the functions of the user can."""

    @property
    def wants(self) -> tuple[str, ...]:
        parts = [getattr(self, field.name) for field in fields(self)]  # pyright: ignore[reportArgumentType]
        return tuple(name for name in _OPTIONAL if any(name in part.wants for part in parts if isinstance(part, UserFunction)))


def user_function(name: str, function: Callable | None, arguments: tuple[str, ...]) -> UserFunction | None:
    """Wrap a function, checking that it takes the positional arguments it will be given; None for None."""
    return None if function is None else required_function(name, function, arguments)


def required_function(name: str, function: Callable, arguments: tuple[str, ...]) -> UserFunction:
    """The same of a function that must be given."""
    if not callable(function):
        got = "None" if function is None else type(function).__name__
        raise ShapeError(f"{name} must be a function of ({', '.join(arguments)}), got {got}.")
    if isinstance(function, Adapter):
        return UserFunction(name, cast(Callable, function), function.wants)
    try:
        signature = inspect.signature(function)
    except ValueError:  # a built-in without a signature takes what it takes
        return UserFunction(name, function, ())
    wants = tuple(name for name in _OPTIONAL if name in signature.parameters)
    try:
        signature.bind(*arguments, **dict.fromkeys(wants))
    except TypeError as problem:
        raise ShapeError(
            f"{name} must be a function of ({', '.join(arguments)}), and may also name t and parameters, got {signature}: {problem}."
        ) from None
    return UserFunction(name, function, wants)
