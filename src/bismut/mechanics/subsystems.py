"""Subsystems: free motion without potentials, potentials without motion, and the subsystems into which free motion decouples.

    L = T(v) − U(q),     T = Σ ½⟨v_i, M_i v_i⟩        one M_i for each factor of a product, one for each body of a power

A quadratic T with constant masses is the sum of those of its factors and bodies, and the free motion of each is independent of the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from bismut.body_loops import each, total
from bismut.mechanics.function import UserFunction
from bismut.spaces import Power, Product, Space, Velocity

if TYPE_CHECKING:
    from bismut.mechanics.system import System

NO_NOISE = {"_noise": None, "_random_force": None, "_noise_hamiltonian": None, "channels": 0, "random_forces": 0, "noise_hamiltonians": 0}


class QuadraticKinetic:
    """T(v) = ½⟨v, M v⟩ on a space.

    masses  a tree like a velocity, of arrays of the same shapes, or of matrices, whose last axis is repeated
    """

    def __init__(self, space: Space, masses: Any):
        self.space, self.masses = space, masses

    @classmethod
    def broadcast(cls, space: Space, masses: list) -> QuadraticKinetic:
        """That of masses that broadcast to the arrays of a velocity, or that are matrices. Known numbers stay known."""
        leaves, structure = jax.tree.flatten(jax.eval_shape(space.zero))

        def full(mass, shape):
            known = mass if isinstance(mass, Tracer) else np.asarray(mass)
            return known if known.ndim > len(shape) else (jnp if isinstance(mass, Tracer) else np).broadcast_to(known, shape)

        return cls(space, structure.unflatten([full(mass, leaf.shape) for mass, leaf in zip(masses, leaves, strict=True)]))

    def __call__(self, q, v: Velocity):
        del q
        if isinstance(self.space, Power):
            return total(lambda v, masses: self.of_body(masses)(None, v), v, self.masses)
        if isinstance(self.space, Product):
            terms = [kinetic(None, w) for kinetic, w in zip(self.factors(), v, strict=True)]
        else:
            terms = [_half_square(m, w) for m, w in zip(jax.tree.leaves(self.masses), jax.tree.leaves(v), strict=True)]
        return sum(terms[1:], terms[0])

    def of_body(self, masses: Any) -> QuadraticKinetic:
        """That of one body of a power, with its masses."""
        assert isinstance(self.space, Power)
        return QuadraticKinetic(self.space.base, masses)

    def factors(self) -> list[QuadraticKinetic]:
        """Those of the factors of a product."""
        assert isinstance(self.space, Product)
        return [QuadraticKinetic(factor, masses) for factor, masses in zip(self.space.factors, self.masses, strict=True)]

    def cells(self) -> tuple[int, ...]:
        """The sizes of the blocks that it and the ends of a step couple, one for each array of the velocity."""
        leaves, masses = jax.tree.leaves(jax.eval_shape(self.space.zero)), jax.tree.leaves(self.masses)
        return tuple(max(cell, v.shape[-1]) if m.ndim > v.ndim else cell for m, v, cell in zip(masses, leaves, self.space.cells(), strict=True))


def _half_square(mass, v):
    if mass.ndim == v.ndim + 1:
        return 0.5 * jnp.sum(v * jnp.einsum("...ij,...j->...i", mass, v))
    return 0.5 * jnp.sum(mass * v * v)


def map_subsystems(system: System, function: Callable[..., tuple], *trees: Any) -> tuple:
    """function(subsystem, *parts), a tuple of trees, for every factor and body of the free system; each entry in the structure of the space."""
    if not system.decouples:
        return function(system, *trees)
    assert system._kinetic is not None
    kinetic = system._kinetic.function
    assert isinstance(kinetic, QuadraticKinetic)
    if isinstance(system.space, Power):
        return each(lambda masses, *parts: map_subsystems(_subsystem(system, kinetic.of_body(masses)), function, *parts), kinetic.masses, *trees)
    factors = zip(kinetic.factors(), *trees, strict=True)
    return tuple(zip(*(map_subsystems(_subsystem(system, factor), function, *parts) for factor, *parts in factors), strict=True))


def _subsystem(system: System, kinetic: QuadraticKinetic) -> System:
    """Free motion with the kinetic energy of a part of the bodies."""
    T = UserFunction("kinetic", kinetic, ())
    fields = {"_lagrangian": T, "_kinetic": T, "_potential": _zero_potential(system), "_force": None, "dissipation": None, **NO_NOISE}
    return system.replace(space=kinetic.space, _cells=kinetic.cells(), parameters=None, _symmetries=(), **fields)


def potentials_only(system: System) -> System:
    """The same potentials with L = −U: what couples the cells of a separable system."""
    potential = system._potential
    assert potential is not None
    minus = UserFunction("lagrangian", lambda q, v, t, parameters: -potential(q, t=t, parameters=parameters), ("t", "parameters"))
    return system.replace(_lagrangian=minus, _kinetic=None)


def free_motion(system: System) -> System:
    """The same constraints with L = T alone, and neither noise nor force."""
    free = system._kinetic
    if free is None:
        lagrangian = system._lagrangian
        assert lagrangian is not None

        def kinetic(q, v, t, parameters):
            at_rest = system.space.zero(system.dtype)
            return lagrangian(q, v, t=t, parameters=parameters) - lagrangian(q, at_rest, t=t, parameters=parameters)

        free = UserFunction("kinetic", kinetic, ("t", "parameters"))
    return system.replace(_lagrangian=free, _potential=_zero_potential(system), _force=None, dissipation=None, **NO_NOISE)


def _zero_potential(system: System) -> UserFunction:
    return UserFunction("potential", lambda q: jnp.zeros((), system.dtype), ())
