"""The user's functions, called with what they ask for.

A Lagrangian is lagrangian(q, v). If it names an argument `t` it is also given the time, and if it names `parameters`, the system's parameters:
numbers that may change, be swept or be differentiated without compiling anything again. The same holds for noise, force and potential.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from bismut.errors import BismutError, ShapeError
from bismut.showing import called

_OFFERED = ("t", "parameters")


@dataclass(frozen=True)
class UserFunction:
    """A user's function together with which of `t` and `parameters` it wants."""

    name: str
    function: Callable
    wants: tuple[str, ...]

    def __repr__(self) -> str:
        return f"{self.name}: {called(self.function)}"

    def __call__(self, *arguments, t, parameters):
        offered = {"t": t, "parameters": parameters}
        try:
            return self.function(*arguments, **{name: offered[name] for name in self.wants})
        except (TypeError, NotImplementedError) as problem:
            if "custom_vjp" not in str(problem) and "custom_lin" not in str(problem):  # JAX has two ways to say it
                raise
            raise BismutError(
                f"{self!r} calls a function with a jax.custom_vjp, which has no forward derivative, and this needs one. "
                "Give it its derivative with jax.custom_jvp instead, from which JAX has both."
            ) from None


def user_function(name: str, function: Callable | None, arguments: tuple[str, ...]) -> UserFunction | None:
    """Wrap a function, checking that it takes the positional arguments it will be given."""
    if function is None:
        return None
    if not callable(function):
        raise ShapeError(f"{name} must be a function of ({', '.join(arguments)}), got {type(function).__name__}.")
    try:
        signature = inspect.signature(function)
    except ValueError:  # a built-in without a signature takes what it takes
        return UserFunction(name, function, ())
    wants = tuple(word for word in _OFFERED if word in signature.parameters)
    try:
        signature.bind(*arguments, **dict.fromkeys(wants))
    except TypeError as problem:
        raise ShapeError(
            f"{name} must be a function of ({', '.join(arguments)}), and may also name t and parameters, got {signature}: {problem}."
        ) from None
    return UserFunction(name, function, wants)


def wanted(name: str, function: Callable, arguments: tuple[str, ...]) -> UserFunction:
    """The same of a function that must be there."""
    found = user_function(name, function, arguments)
    if found is None:
        raise ShapeError(f"{name} must be a function of ({', '.join(arguments)}), got None.")
    return found
