"""A parameter that is moved.

    λ(t) = a + (b − a) clip(t/T, 0, 1)        in the place of a parameter of the potential

The system's functions are given λ(t) in place of the number, and a, b and T are parameters: forward, backward and at rest are one program.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from bismut.errors import DomainError
from bismut.mechanics import Scheme
from bismut.mechanics.function import Adapter, UserFunction, required_function

FROM, TO, DURATION = "protocol_from", "protocol_to", "protocol_time"


@dataclass(frozen=True, eq=False)
class _Moved(Adapter):
    """A function of the system with λ(t) as one of its parameters."""

    function: UserFunction
    name: str

    @property
    def wants(self):
        return ("t", "parameters")

    def __call__(self, *arguments, t=None, parameters: Any = None):
        share = jnp.clip(t / parameters[DURATION], 0.0, 1.0)
        moved = parameters[FROM] + (parameters[TO] - parameters[FROM]) * share
        return self.function(*arguments, t=t, parameters={**parameters, self.name: moved})


def moved(scheme: Scheme, name: str) -> Scheme:
    """The scheme whose parameter moves; `between` says from where to where."""
    system = scheme.system
    if not isinstance(system.parameters, Mapping) or name not in system.parameters:
        known = ", ".join(system.parameters) if isinstance(system.parameters, Mapping) else "none"
        raise DomainError(f"The parameter that is moved must be a key of the system's parameters, which are {known}; got {name!r}.")
    if jnp.shape(system.parameters[name]) != ():
        raise DomainError(f"The parameter that is moved must be one number, but {name!r} has shape {jnp.shape(system.parameters[name])}.")
    number = jnp.asarray(system.parameters[name], system.dtype)
    parameters = {**system.parameters, FROM: number, TO: number, DURATION: jnp.ones((), system.dtype)}
    wrapped = {}
    for field, arguments in (("_lagrangian", ("q", "v")), ("_potential", ("q",))):
        function = getattr(system, field)
        if function is not None and "parameters" in function.wants:
            wrapped[field] = required_function(field[1:], _Moved(function, name), arguments)
    other = copy(scheme)
    object.__setattr__(other, "system", system.replace(parameters=parameters, **wrapped))
    return other


def between(scheme: Scheme, a: float, b: float, duration: float) -> Scheme:
    """A moved scheme with its ends and its duration."""
    dtype = scheme.system.dtype
    values = tuple(jnp.asarray(number, dtype) for number in (a, b, duration))
    return eqx.tree_at(lambda s: tuple(s.system.parameters[name] for name in (FROM, TO, DURATION)), scheme, values)
