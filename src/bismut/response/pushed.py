"""A system with a constant force on one component, as a parameter.

    F = f e_a        on the first body, in the frame of displacements (on a group, that of the body)

Size f and component a are parameters, so one program serves all of them, and a sweep runs them on one noise. Subtracting a coupled run is a control
variate, as in the transient subtraction of Monmarché, Spacek & Stoltz (arXiv 2410.00212), whose pair is another one: relaxation less equilibrium.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import copy

import jax
import jax.numpy as jnp

from bismut.flows import Brownian, Langevin
from bismut.mechanics import Scheme
from bismut.mechanics.function import UserFunction
from bismut.spaces import add

SIZE, COMPONENT = "push_size", "push_component"


def why_not(scheme: Scheme) -> str:
    """Why no force can be added; empty where one can."""
    if not isinstance(scheme, Langevin | Brownian):
        return "only Langevin and Brownian motion have a known answer to a force"
    if (isinstance(scheme, Brownian) and scheme.metropolised) or not scheme.pathwise:
        return "a Metropolised step allows no force that has no potential"
    if not (scheme.system.parameters is None or isinstance(scheme.system.parameters, Mapping)):
        return "the parameters of the system are no dictionary, to which the size of a force could be added"
    return ""


def pushed(scheme: Scheme, picked: Callable) -> Scheme:
    """The scheme with a force along component a of the first body; `picked` takes (scheme, displacement) to (bodies, components)."""
    system, space = scheme.system, scheme.system.space
    # ⟨e_a, picked(v)⟩ as a covector: picked is linear.
    rows = jax.vmap(lambda x: picked(scheme, space.unflatten(x))[0])(jnp.eye(space.dim, dtype=system.dtype)).T
    own = system._force

    def force(q, v, t, parameters):
        row = jax.nn.one_hot(parameters[COMPONENT], rows.shape[0], dtype=system.dtype) @ rows
        push = space.unflatten(parameters[SIZE] * row)
        return push if own is None else add(own(q, v, t=t, parameters=parameters), push)

    parameters = {**(system.parameters or {}), SIZE: jnp.zeros((), system.dtype), COMPONENT: jnp.zeros((), int)}
    other = copy(scheme)
    object.__setattr__(other, "system", system.replace(_force=UserFunction("force", force, ("t", "parameters")), parameters=parameters))
    return other
