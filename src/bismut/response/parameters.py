"""Parameters of a scheme by name, as one vector.

    θ ∈ ℝᴾ,        put: (scheme, θ) ↦ the scheme with these numbers

A name is a key of the system's parameters (a number, an array, or a tree of them: the weights of a network), "temperature" where kT is a number, or
"friction": a common factor on Γ, 1 as it is. Masses and frictions are parameters where they are functions that name `parameters`:
mass=lambda q, parameters: ..., friction=lambda q, parameters: ..., schedule=lambda t, parameters: ....
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from bismut.errors import DomainError, nearest
from bismut.formatting import first_of
from bismut.mechanics import Scheme
from bismut.mechanics.friction import Friction
from bismut.mechanics.friction.laws import FactoredFriction, ModalFriction, UniformFriction
from bismut.programs.dependence import depends

FRICTION, TEMPERATURE = "friction", "temperature"


@dataclass(frozen=True)
class Parameters:
    """Names, and where their numbers are in the vector."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]

    @property
    def count(self) -> int:
        return sum(self.sizes)

    def vector(self, scheme: Scheme) -> np.ndarray:
        """The numbers as they are."""
        return np.concatenate([np.ravel(np.asarray(ravel_pytree(_value(scheme, name))[0])) for name in self.names])

    def traced_vector(self, scheme: Scheme) -> Any:
        """The same inside a program, where numbers may be traced."""
        return jnp.concatenate([ravel_pytree(_value(scheme, name))[0] for name in self.names])

    def put(self, scheme: Scheme, theta: Any) -> Scheme:
        """The scheme with other numbers; θ may be traced."""
        start = 0
        for name, size in zip(self.names, self.sizes, strict=True):
            scheme = _replaced(scheme, name, ravel_pytree(_value(scheme, name))[1](jnp.asarray(theta[start : start + size], scheme.system.dtype)))
            start += size
        return scheme

    def split(self, array: np.ndarray, scheme: Scheme) -> dict[str, Any]:
        """An array (..., P) by name: the last axis as the tree of each, numbers without axes."""
        parts, start = {}, 0
        for name, size in zip(self.names, self.sizes, strict=True):
            parts[name] = _unraveled(np.asarray(array[..., start : start + size]), _value(scheme, name))
            start += size
        return parts

    @property
    def labels(self) -> list[str]:
        """A name for each component."""
        return [name if size == 1 else f"{name}[{i}]" for name, size in zip(self.names, self.sizes, strict=True) for i in range(size)]

    def written(self, theta: np.ndarray) -> str:
        """Numbers with their names, for a sentence."""
        return first_of([f"{label} = {float(x):.6g}" for label, x in zip(self.labels, theta, strict=True)], 8, ", ")


def parameters_of(scheme: Scheme, names: Sequence[str] | str | None) -> Parameters:
    """The parameters of these names; by default all numbers that the system has as parameters."""
    own = scheme.system.parameters
    if names is None:
        if not isinstance(own, Mapping) or not own:
            raise DomainError(f"Name the parameters, such as parameters=['k'], which are keys of the system's parameters. {_hint(scheme)}")
        names = [name for name in own if all(jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in jax.tree.leaves(own[name]))]
    names = (names,) if isinstance(names, str) else tuple(names)
    if not names or len(set(names)) != len(names) or not all(isinstance(name, str) for name in names):
        raise DomainError(f"parameters must be different names such as ['k', 'temperature'], got {names!r}.")
    for name in names:
        _check(scheme, name)
    return Parameters(names, tuple(int(ravel_pytree(_value(scheme, name))[0].size) for name in names))


def _check(scheme: Scheme, name: str) -> None:
    own = scheme.system.parameters
    if isinstance(own, Mapping) and name in own:
        if not all(jnp.issubdtype(jnp.result_type(leaf), jnp.floating) for leaf in jax.tree.leaves(own[name])):
            raise DomainError(f"The parameter {name!r} is no real number, so nothing has a derivative with respect to it.")
        return
    if name == FRICTION and _scalable(getattr(scheme, "friction", None)):
        return
    if name == TEMPERATURE and getattr(getattr(scheme, "temperature", None), "value", None) is not None:
        return
    known = [*(own if isinstance(own, Mapping) else ()), TEMPERATURE, FRICTION]
    raise DomainError(f"{scheme.title} has no parameter {name!r}. {nearest(name, known)} {_hint(scheme)}")


def _hint(scheme: Scheme) -> str:
    del scheme
    return (
        "A system has those given as parameters={...} that its functions name; of a mass, write mass=lambda q, parameters: "
        'parameters["m"] * jnp.eye(n), of a friction, friction=lambda q, parameters: B with B Bᵀ = 2kT Γ.'
    )


def _scalable(friction: Friction | None) -> bool:
    return isinstance(friction, ModalFriction | UniformFriction) or (isinstance(friction, FactoredFriction) and friction.constant is not None)


def _value(scheme: Any, name: str) -> Any:
    own = scheme.system.parameters
    if isinstance(own, Mapping) and name in own:
        return own[name]
    return jnp.ones((), scheme.system.dtype) if name == FRICTION else scheme.temperature.value


def _replaced(scheme: Any, name: str, value: Any) -> Scheme:
    own = scheme.system.parameters
    if isinstance(own, Mapping) and name in own:
        return eqx.tree_at(lambda s: s.system.parameters[name], scheme, value)
    if name == TEMPERATURE:
        return eqx.tree_at(lambda s: s.temperature.value, scheme, value)
    law = scheme.friction
    if isinstance(law, ModalFriction):
        return eqx.tree_at(lambda s: s.friction.rates, scheme, [value * rates for rates in law.rates])
    if isinstance(law, UniformFriction):
        return eqx.tree_at(lambda s: s.friction.rate, scheme, value * law.rate)
    return eqx.tree_at(lambda s: s.friction.constant, scheme, jnp.sqrt(value) * law.constant)


def _unraveled(array: np.ndarray, like: Any) -> Any:
    leaves, structure = jax.tree.flatten(like)
    parts, start = [], 0
    for leaf in leaves:
        part = array[..., start : start + np.size(leaf)].reshape((*array.shape[:-1], *np.shape(leaf)))
        parts.append(part if part.ndim else float(part))
        start += np.size(leaf)
    return jax.tree.unflatten(structure, parts)


# Where parameters stand, read off the programs of the system's functions. Statistical mechanics has a formula for parameters of the potential and of
# kT; of the mass where nothing is constrained; of a constraint it has none that is used here, because the surface itself moves.


def in_potential(scheme: Any, parameters: Parameters) -> bool:
    """Whether U(q) can depend on them."""
    return _depends(scheme, parameters, lambda new, q, v, t: new.system.potential(q, t))


def in_mass(scheme: Any, parameters: Parameters) -> bool:
    """Whether ∂L/∂v can depend on them."""
    return _depends(scheme, parameters, lambda new, q, v, t: new.system.momentum(q, v, t))


def in_constraint(scheme: Any, parameters: Parameters) -> bool:
    """Whether g(q) can depend on them."""
    return bool(scheme.system.constraints) and _depends(scheme, parameters, lambda new, q, v, t: new.system.constraint(q, t))


def in_temperature(scheme: Any, parameters: Parameters) -> bool:
    """Whether kT can depend on them."""
    return _depends(scheme, parameters, lambda new, q, v, t: new.temperature(t, new.system.parameters))


def _depends(scheme: Any, parameters: Parameters, function: Any) -> bool:
    system = scheme.system
    q, v = jax.eval_shape(lambda: (system.space.origin(system.dtype), system.space.zero(system.dtype)))
    time = jnp.zeros((), system.dtype)
    return depends(lambda theta, q, v: function(parameters.put(scheme, theta), q, v, time), parameters.vector(scheme), q, v)
