"""Parts of a system: its motion without potentials, its potentials without motion, and the pieces into which free motion falls.

L = T(v) − U(q),     T = Σ T_i(v_i)   over factors of a product and bodies of a power
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp

from bismut.mechanics.function import UserFunction
from bismut.mechanics.kinetic import Quadratic
from bismut.repetition import each
from bismut.spaces import Power

if TYPE_CHECKING:
    from bismut.mechanics.system import System

# A system without noise.
QUIET = {"_noise": None, "_random_force": None, "_noise_hamiltonian": None, "channels": 0, "random_forces": 0, "noise_hamiltonians": 0}


def apart(system: System, function: Callable[..., tuple], *trees: Any) -> tuple:
    """function(piece, *parts), a tuple of trees, for every piece of the free system; each entry as the space holds its pieces."""
    if not system.falls_apart:
        return function(system, *trees)
    assert system._kinetic is not None
    kinetic = system._kinetic.function
    assert isinstance(kinetic, Quadratic)
    if isinstance(system.space, Power):
        return each(lambda masses, *parts: apart(_piece(system, kinetic.one(masses)), function, *parts), kinetic.masses, *trees)
    found = [apart(_piece(system, factor), function, *parts) for factor, *parts in zip(kinetic.factors(), *trees, strict=True)]
    return tuple(zip(*found, strict=True))


def _piece(system: System, kinetic: Quadratic) -> System:
    """Free motion with a kinetic energy of fewer bodies."""
    T = UserFunction("kinetic", kinetic, ())
    changed = {"_lagrangian": T, "_kinetic": T, "_potential": _nothing(system), "_force": None, "dissipation": None, **QUIET}
    return system.changed(space=kinetic.space, _cells=_cells(kinetic), parameters=None, _symmetries=(), **changed)


def without_kinetic_energy(system: System) -> System:
    """The same potentials with L = −U: what couples the cells of a separable system."""
    potential = system._potential
    assert potential is not None
    minus = UserFunction("lagrangian", lambda q, v, t, parameters: -potential(q, t=t, parameters=parameters), ("t", "parameters"))
    return system.changed(_lagrangian=minus, _kinetic=None)


def without_potential(system: System) -> System:
    """The same constraints with L = T alone, and neither noise nor force: free motion."""
    free = system._kinetic
    if free is None:
        whole = system._lagrangian
        assert whole is not None

        def kinetic(q, v, t, parameters):
            at_rest = system.space.zero(system.dtype)
            return whole(q, v, t=t, parameters=parameters) - whole(q, at_rest, t=t, parameters=parameters)

        free = UserFunction("kinetic", kinetic, ("t", "parameters"))
    return system.changed(_lagrangian=free, _potential=_nothing(system), _force=None, dissipation=None, **QUIET)


def _nothing(system: System) -> UserFunction:
    return UserFunction("potential", lambda q: jnp.zeros((), system.dtype), ())


def _cells(kinetic: Quadratic) -> tuple[int, ...]:
    """The sizes of the cells that a kinetic energy and the ends of a step couple, one for each array of the velocity."""
    leaves = jax.tree.leaves(jax.eval_shape(kinetic.space.zero))
    masses = jax.tree.leaves(kinetic.masses)
    return tuple(max(cell, v.shape[-1]) if m.ndim > v.ndim else cell for m, v, cell in zip(masses, leaves, kinetic.space.cells(), strict=True))
