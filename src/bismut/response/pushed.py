"""A system with a constant force on one component, as a parameter.

    F = f e_a        on body k, in the frame of displacements (on a group, that of the body)

Size f, (k, a) as one number, and whether it acts are parameters, so one program serves all of them, and a sweep runs them on one noise. The mean
over bodies is that of every body under its own force: each is pushed in turn where they are few; where they are many the first stands for all, if
masses and frictions are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from bismut.ensembles.starts import start_at
from bismut.flows import Brownian, Langevin
from bismut.mechanics import Scheme
from bismut.mechanics.function import UserFunction
from bismut.noise import Wiener
from bismut.spaces import add

SIZE, COMPONENT, ACTS = "push_size", "push_component", "push_acts"
_EACH = 12  # components of all bodies together, up to which every body is pushed


def why_not(scheme: Scheme) -> str:
    """Why no force can be added; empty where one can."""
    if not isinstance(scheme, Langevin | Brownian):
        return "only Langevin and Brownian motion have a known answer to a force"
    if (isinstance(scheme, Brownian) and scheme.metropolised) or not scheme.pathwise:
        return "a Metropolised step allows no force that has no potential"
    if not (scheme.system.parameters is None or isinstance(scheme.system.parameters, Mapping)):
        return "the parameters of the system are no dictionary, to which the size of a force could be added"
    return ""


def bodies_pushed(scheme: Scheme, start: Any, picked: Callable) -> tuple[int, str]:
    """How many bodies are pushed, the first ones; and why none is, if one cannot stand for the others."""
    bodies, components = jax.eval_shape(lambda: picked(scheme, scheme.space.zero(scheme.system.dtype))).shape
    if bodies * components <= _EACH:
        return bodies, ""
    transposed, q = _transposed(scheme, picked), start_at(scheme, start, 0.0).one(Wiener(0)).q
    alike = np.tile(np.random.default_rng(0).normal(size=components), (bodies, 1))
    for name, response in _matrices(scheme, q):
        seen = np.asarray(picked(scheme, response(transposed(alike))))
        if not np.allclose(seen, seen[0], rtol=1e-9, atol=1e-9 * np.abs(seen).max()):
            return 0, f"{bodies} bodies are too many to push each, and none stands for all: their {name} differ"
    return 1, ""


def _matrices(scheme: Any, q: Any) -> list[tuple[str, Callable]]:
    """What a velocity is multiplied with."""
    system, space, kT = scheme.system, scheme.space, scheme.kT(0.0)
    if isinstance(scheme, Brownian) and scheme.mobility is not None:
        return [("mobilities", lambda v: space.unflatten(scheme._matrix(q, 0.0) @ space.flatten(v)))]
    mass = lambda v: jax.tree.map(jnp.subtract, system.momentum(q, v, 0.0), system.momentum(q, space.zero(system.dtype), 0.0))
    if isinstance(scheme, Brownian):
        return [("mobilities", mass)]
    return [("masses", mass), ("frictions", lambda v: space.unflatten(scheme.friction.drag(system, q, space.flatten(v), 0.0, kT)))]


def _transposed(scheme: Scheme, picked: Callable) -> Callable:
    """⟨u, picked(v)⟩ as a covector in v, of u (bodies, components): picked is linear."""
    return lambda u: jax.vjp(lambda v: picked(scheme, v), scheme.space.zero(scheme.system.dtype))[1](jnp.asarray(u, scheme.system.dtype))[0]


def pushed(scheme: Scheme, picked: Callable, bodies: int) -> Scheme:
    """The scheme with a force along component a of one of the first bodies; `picked` takes (scheme, displacement) to (bodies, components)."""
    system, space = scheme.system, scheme.system.space
    every, components = jax.eval_shape(lambda: picked(scheme, space.zero(system.dtype))).shape
    units = np.eye(bodies * components, every * components).reshape(-1, every, components)
    rows = jnp.stack([space.flatten(_transposed(scheme, picked)(unit)) for unit in units])
    own = system._force

    def force(q, v, t, parameters):
        row = jax.nn.one_hot(parameters[COMPONENT], rows.shape[0], dtype=system.dtype) @ rows
        push = space.unflatten(parameters[ACTS] * parameters[SIZE] * row)
        return push if own is None else add(own(q, v, t=t, parameters=parameters), push)

    parameters = {**(system.parameters or {}), SIZE: jnp.zeros((), system.dtype), COMPONENT: jnp.zeros((), int), ACTS: jnp.ones((), system.dtype)}
    other = copy(scheme)
    object.__setattr__(other, "system", system.replace(_force=UserFunction("force", force, ("t", "parameters")), parameters=parameters))
    return other
